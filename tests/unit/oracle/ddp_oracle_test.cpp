// Our ddp against recordings of torch's DistributedDataParallel (docs/oracle.md): the same
// collectives in the same order, the same losses, gradients, weights and buffers.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/oracle/agreement.hpp"
#include "tests/unit/oracle/our_run.hpp"

using namespace lockstep::test;

namespace ddp_oracle_test {
using nlohmann::json;

namespace {

/// Layers whose results have a long way of roundings in 16 bits.
bool is_long(const json& setting) {
  return std::ranges::any_of(setting["network"]["layers"], [](const json& layer) {
    return layer["kind"] == "BatchNorm1d" || layer["kind"] == "LayerNorm" ||
           layer["kind"] == "Conv2d";
  });
}

/// What rounding may change: torch adds in a different order than we do, and no value of a setting
/// comes from more than 64 roundings, of which at most 16 are to 16 bits.
double rounding_of(const json& setting, const std::string& dtype) {
  const std::string narrow = setting.value("autocast", dtype);
  if (is_long(setting) && (narrow == "bf16" || narrow == "fp16")) {
    return 16 * (narrow == "bf16" ? 0x1p-8 : 0x1p-11);
  }
  if (dtype == "fp64") {
    return 64 * 0x1p-53;
  }
  // In half precision every sum is of two ranks' numbers and rounded once, in any order.
  return dtype == "fp32" ? 64 * 0x1p-24 : 0;
}

}  // namespace

TEST_CASE("ddp issues the collectives that torch's issues") {
  for (const auto& path : recordings_in("")) {
    DYNAMIC_SECTION(path.stem().string()) {
      const json recorded = recording_at(path);
      const json ours = our_run(recorded["setting"]);
      for (size_t rank = 0; rank < ours.size(); ++rank) {
        INFO("rank " << rank);
        CHECK(ours[rank]["ended"] == recorded["ranks"][rank]["ended"]);
        CHECK(ours[rank]["operations"] == recorded["ranks"][rank]["operations"]);
      }
    }
  }
}

TEST_CASE("ddp computes the losses, gradients and weights that torch's computes") {
  for (const auto& path : recordings_in("")) {
    DYNAMIC_SECTION(path.stem().string()) {
      const json recorded = recording_at(path);
      const json& setting = recorded["setting"];
      const std::string dtype = setting["dtype"];
      const bool has_values = recorded["setting"].value("values", true);
      const bool exact = recorded["exact"];
      const json ours = has_values ? our_run(recorded["setting"]) : json::array();
      for (size_t rank = 0; rank < ours.size(); ++rank) {
        const json& theirs = recorded["ranks"][rank];
        const double tolerance = exact ? 0 : rounding_of(setting, dtype);
        INFO("rank " << rank);
        check_agree("losses", ours[rank]["losses"], as_single_precision(theirs["losses"]),
                    exact ? 0 : rounding_of(setting, dtype == "fp64" ? "fp32" : dtype));
        check_agree("gradients", ours[rank]["gradients"], theirs["gradients"], tolerance);
        if (theirs["ended"] == "stuck") {
          continue;  // ours waits forever, without a last word
        }
        // A number that was divided by the scale is as inexact as it was before.
        CHECK(ours[rank].value("scales", json()) == theirs.value("scales", json()));
        const auto alone = [](const json& state) { return json::array({state}); };
        check_agree("parameters", alone(ours[rank]["parameters"]), alone(theirs["parameters"]),
                    tolerance);
        check_agree("buffers", alone(ours[rank]["buffers"]), alone(theirs["buffers"]), tolerance);
      }
    }
  }
}

TEST_CASE("the recordings cover at least 24 settings") { CHECK(recordings_in("").size() >= 24); }

}  // namespace ddp_oracle_test
