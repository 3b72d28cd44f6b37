#include "io/expression/quantity.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace quantity_test {

namespace {

template <class T>
std::string message(const std::variant<T, QuantityError>& parsed) {
  const auto* error = std::get_if<QuantityError>(&parsed);
  return error == nullptr ? "no error" : error->message;
}

template <class T>
std::string remedy(const std::variant<T, QuantityError>& parsed) {
  const auto* error = std::get_if<QuantityError>(&parsed);
  return error == nullptr ? "no error" : error->remedy;
}

int64_t picoseconds(std::string_view text) { return std::get<Time>(parse_time(text)).count(); }
int64_t bytes(std::string_view text) { return std::get<Bytes>(parse_bytes(text)).count(); }
int64_t rate(std::string_view text) { return std::get<BytesPerSecond>(parse_rate(text)).count(); }

}  // namespace

TEST_CASE("times count picoseconds") {
  CHECK(picoseconds("1 ps") == 1);
  CHECK(picoseconds("1 ns") == 1'000);
  CHECK(picoseconds("1 us") == 1'000'000);
  CHECK(picoseconds("1.5 ms") == 1'500'000'000);
  CHECK(picoseconds("1 s") == 1'000'000'000'000);
  CHECK(picoseconds("30 min") == 1'800'000'000'000'000);
  CHECK(picoseconds("2 h") == 7'200'000'000'000'000);
  CHECK(picoseconds("1 d") == 86'400'000'000'000'000);
  CHECK(picoseconds("0.1 y") == 3'153'600'000'000'000'000);  // 36.5 d
  CHECK(picoseconds("0") == 0);
  CHECK(picoseconds("0.0") == 0);
  CHECK(picoseconds(" 10ms ") == 10'000'000'000);
  CHECK(picoseconds("1_000 ns") == 1'000'000);
  CHECK(picoseconds("1e3 ns") == 1'000'000);
  CHECK(picoseconds("1e-3 ns") == 1);
}

TEST_CASE("a fraction of a count is rounded to the nearest") {
  CHECK(picoseconds("0.4 ps") == 0);
  CHECK(picoseconds("0.5 ps") == 1);
  CHECK(picoseconds("1.4999 ps") == 1);
  CHECK(bytes("0.3 KiB") == 307);  // 307.2
  CHECK(bytes("1e-30 TB") == 0);
  CHECK(bytes("1e-999999999 TB") == 0);
  CHECK(picoseconds("0.000000000001 s") == 1);
  CHECK(picoseconds("0.333333333333333333333333333333333333333333 s") == 333'333'333'333);
  CHECK(picoseconds("100000000000000000000000000000e-20 ns") == 1'000'000'000'000);
}

TEST_CASE("bytes are decimal or binary") {
  CHECK(bytes("1 B") == 1);
  CHECK(bytes("1 kB") == 1'000);
  CHECK(bytes("1 MB") == 1'000'000);
  CHECK(bytes("1 GB") == 1'000'000'000);
  CHECK(bytes("1 TB") == 1'000'000'000'000);
  CHECK(bytes("1 KiB") == 1'024);
  CHECK(bytes("1 MiB") == 1'048'576);
  CHECK(bytes("1 GiB") == 1'073'741'824);
  CHECK(bytes("1 TiB") == 1'099'511'627'776);
}

TEST_CASE("a small b counts bits, eight to a byte") {
  CHECK(rate("8 kb/s") == 1'000);
  CHECK(rate("1 Mb/s") == 125'000);
  CHECK(rate("400 Gb/s") == 50'000'000'000);
  CHECK(rate("1 Tb/s") == 125'000'000'000);
  CHECK(rate("900 GB/s") == 900'000'000'000);
  CHECK(rate("1 GiB/s") == 1'073'741'824);
  CHECK(rate("7 B/s") == 7);
}

TEST_CASE("flops, flops per second and percentages") {
  CHECK(std::get<Flops>(parse_flops("1.5 GFLOP")).count() == 1'500'000'000);
  CHECK(std::get<Flops>(parse_flops("9 PFLOP")).count() == 9'000'000'000'000'000);
  CHECK(std::get<FlopsPerSecond>(parse_flops_rate("989 TFLOP/s")).count() == 989'000'000'000'000);
  CHECK(std::get<double>(parse_percent("12.5 %")) == 0.125);
  CHECK(std::get<double>(parse_percent("50%")) == 0.5);
  CHECK(std::get<double>(parse_percent("0")) == 0);
  CHECK(message(parse_percent("50")) == "`50` is not a percentage");
  CHECK(remedy(parse_percent("50")) == "write 50 %");
  CHECK(message(parse_percent("-1 %")) == "a percentage is not negative");
}

TEST_CASE("what is no quantity says what to write") {
  CHECK(message(parse_time("10")) == "`10` has no unit");
  CHECK(remedy(parse_time("10")) == "write a unit of time, as in 10 ms");
  CHECK(message(parse_time("")) == "a time is missing");
  CHECK(message(parse_time("-1 ms")) == "a time is not negative");
  CHECK(message(parse_time("nan")) == "`nan` is not a time: it does not begin with a number");
  CHECK(message(parse_time("inf s")) == "`inf s` is not a time: it does not begin with a number");
  CHECK(message(parse_time("10 MiB")) == "`MiB` is a unit of bytes, not of time");
  CHECK(message(parse_bytes("10 Gb/s")) == "`Gb/s` is a unit of rate, not of bytes");
  CHECK(message(parse_time("10 sec")) == "unknown unit `sec`");
  CHECK(remedy(parse_time("10 sec")) == "did you mean `s`?");
  CHECK(remedy(parse_time("10 minutes")) == "did you mean `min`?");
  CHECK(remedy(parse_bytes("10 mb")) == "did you mean `MB`?");
  CHECK(remedy(parse_bytes("10 KB")) == "did you mean `kB`?");
  CHECK(remedy(parse_rate("10 gbps")).find("did you mean `") == 0);
  CHECK(remedy(parse_rate("10 gbit/s")) == "did you mean `Gb/s`?");
  CHECK(remedy(parse_flops("10 TFLOPS")) == "did you mean `TFLOP`?");
  CHECK(remedy(parse_flops_rate("10 TFLOPS/s")) == "did you mean `TFLOP/s`?");
  CHECK(remedy(parse_flops_rate("10 TFLOPS")) == "did you mean `TFLOP/s`?");
  CHECK(remedy(parse_time("10 fortnights")) == "the units of time are ps ns us ms s min h d y");
  CHECK(message(parse_time("08 s")) == "a number does not begin with a zero");
  CHECK(message(parse_time("1 " + std::string(100, 'x'))) ==
        "unknown unit `" + std::string(32, 'x') + "...`");
  CHECK(message(parse_time("1 ms 2 us")) == "unknown unit `ms 2 us`");
}

TEST_CASE("what does not fit in 64 bits is an error, never a wrong number") {
  CHECK(message(parse_time("1 y")) == "the time does not fit in 64 bits");
  CHECK(remedy(parse_time("1 y")) == "the longest time is 106 d");
  CHECK(message(parse_bytes("9e18 B")) == "no error");
  CHECK(message(parse_bytes("9223372036854775807 B")) == "no error");
  CHECK(bytes("9223372036854775807 B") == INT64_MAX);
  CHECK(message(parse_bytes("9223372036854775808 B")) ==
        "the size in bytes does not fit in 64 bits");
  CHECK(message(parse_bytes("1e999999999999999999999 B")) == "the exponent is out of range");
  CHECK(message(parse_bytes("1e4000 B")) == "the size in bytes does not fit in 64 bits");
  CHECK(message(parse_bytes("0e4000 B")) == "no error");
}

}  // namespace quantity_test
