#include "io/calibration/calibration_file.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace lockstep;

namespace calibration_file_test {

namespace {

const std::string origin = R"("origin": {"lockstep_version": "0.1.0", "backend": "gloo",
  "device": "a CPU", "preset": "cpu", "host_cpu": "a CPU", "cores": 2, "ranks": 2,
  "libraries": "", "driver": "", "date": "2026-11-22", "command": "lockstep calibrate",
  "load_average": 0.5, "is_quick": false})";
const std::string point =
    R"({"flops": 10, "bytes": 20, "low_s": 1e-6, "median_s": 2e-6, "high_s": 3e-6})";
const std::string kernel = R"({"kernel": "layer_forward", "layer": "linear", "dtype": "fp32",
  "ranks": 2, "points": [)" +
                           point + "]}";
const std::string size = R"({"bytes": 8, "low_s": 1e-6, "median_s": 2e-6, "high_s": 3e-6})";
const std::string transfer = R"({"operation": "all_reduce", "ranks": 2, "points": [)" + size + "]}";
const std::string judged =
    R"({"part": "compute", "training": "t", "measured_s": 1e-3, "predicted_s": 2e-3})";

std::string file_with(const std::string& kernels, const std::string& transfers,
                      const std::string& held_out = judged, const std::string& own = origin,
                      const std::string& version = "1") {
  return R"({"format": "lockstep-calibration", "version": )" + version + ", " + own +
         R"(, "launch_overheads": [{"ranks": 2, "low_s": 0, "median_s": 1e-6, "high_s": 1e-5}],
         "held_out": [)" +
         held_out + R"(], "kernels": [)" + kernels + R"(], "transfers": [)" + transfers + "]}";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Why a text is refused; empty: it is not.
std::string refusal(const std::string& text) {
  try {
    calibration_of(text);
    return "";
  } catch (const CalibrationError& error) {
    CHECK(!error.remedy().empty());
    return error.what();
  }
}

}  // namespace

TEST_CASE("a calibration is read with its units") {
  const Calibration read = calibration_of(file_with(kernel, transfer));
  CHECK(read.origin.device == "a CPU");
  CHECK(read.origin.ranks == 2);
  REQUIRE(read.kernels.size() == 1);
  CHECK(read.kernels[0].kernel == Kernel::layer_forward);
  CHECK(read.kernels[0].layer == LayerKind::linear);
  CHECK(read.kernels[0].points[0].flops == Flops(10));
  CHECK(read.kernels[0].points[0].traffic == 20_B);
  CHECK(read.kernels[0].points[0].time.high == 3_us);
  REQUIRE(read.transfers.size() == 1);
  CHECK(read.transfers[0].kind == OpKind::all_reduce);
  CHECK(read.transfers[0].points[0].time.median == 2_us);
  CHECK(read.launch_overheads[0].time.median == 1_us);
  CHECK(read.held_out[0].predicted == 2_ms);
}

TEST_CASE("what is read writes a text that reads the same") {
  const std::string text = text_of(calibration_of(file_with(kernel, transfer)));
  CHECK(text_of(calibration_of(text)) == text);
}

TEST_CASE("a file that is no calibration is refused with the place") {
  const std::string good = file_with(kernel, transfer);
  const auto without = [&](const std::string& from, const std::string& to) {
    return refusal(changed(good, from, to));
  };
  CHECK(refusal(good).empty());
  CHECK(refusal("") == "the file is not JSON");
  CHECK(refusal("[1, 2]") == "the file is not an object");
  CHECK(refusal(good.substr(0, good.size() / 2)) == "the file is not JSON");
  CHECK(without("lockstep-calibration", "other") == "/format: is not `lockstep-calibration`");
  CHECK(refusal(file_with(kernel, transfer, judged, origin, "2")) ==
        "/version: is not 1, the version that this program reads");
  CHECK(without("\"dtype\": \"fp32\"", "\"dtype\": \"fp31\"") ==
        "/kernels/0/dtype: `fp31` is not known");
  CHECK(without("\"layer\": \"linear\"", "\"layer\": \"linea\"") ==
        "/kernels/0/layer: `linea` is not known");
  CHECK(without("\"flops\": 10", "\"flops\": -10").find("/kernels/0/points/0/flops") == 0);
  CHECK(without("\"flops\": 10", "\"flops\": 1e400").find("the file is not JSON") == 0);
  CHECK(without("\"flops\": 10", "\"flops\": 18446744073709551615")
            .find("/kernels/0/points/0/flops") == 0);
  CHECK(without("\"low_s\": 1e-6", "\"low_s\": -1e-6").find("/kernels/0/points/0/low_s") == 0);
  CHECK(without("\"low_s\": 1e-6", "\"low_s\": 1e9").find("/kernels/0/points/0/low_s") == 0);
  CHECK(without("\"low_s\": 1e-6", "\"low_s\": \"1\"").find("/kernels/0/points/0/low_s") == 0);
  CHECK(without("\"low_s\": 1e-6", "\"low_s\": 5e-6") ==
        "/kernels/0/points/0: low_s, median_s and high_s must not decrease");
  CHECK(without("\"flops\": 10, ", "") == "/kernels/0/points/0: `flops` is missing");
  CHECK(without("\"flops\": 10", "\"flops\": 10, \"more\": 1") ==
        "/kernels/0/points/0: holds a key that this version does not know");
  CHECK(without("\"backend\": \"gloo\"", "\"backend\": \"mpi\"") ==
        "/origin/backend: is neither gloo nor nccl");
  CHECK(without("\"cores\": 2", "\"cores\": 0").find("/origin/cores") == 0);
  CHECK(without("\"part\": \"compute\"", "\"part\": \"\"") == "/held_out/0/part: is empty");
}

TEST_CASE("curves that say nothing, or the same twice, are refused") {
  CHECK(refusal(file_with(kernel + ", " + kernel, transfer)) ==
        "/kernels/1: measures the same as /kernels/0");
  CHECK(refusal(file_with(kernel, transfer + ", " + transfer)) ==
        "/transfers/1: measures the same as /transfers/0");
  CHECK(refusal(file_with(kernel, R"({"operation": "barrier", "ranks": 2, "points": []})")) ==
        "/transfers/0/points: is empty");
  CHECK(refusal(file_with(kernel, changed(transfer, size, size + ", " + size))) ==
        "/transfers/0/points/1/bytes: is not above that of the point before");
}

TEST_CASE("a file that is too long, or not there, is refused unread") {
  CHECK(refusal(std::string(calibration_bytes_max + 1, ' ')) == "the file is longer than 16 MiB");
  CHECK_THROWS_AS(read_calibration("/nowhere/at/all.json"), CalibrationError);
  CHECK_THROWS_AS(read_calibration("/"), CalibrationError);
}

}  // namespace calibration_file_test
