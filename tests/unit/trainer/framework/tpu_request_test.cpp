#include "model/trainer/framework/tpu_request.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace tpu_request_test {

namespace {

constexpr Version v1_9{1, 9, 0};
constexpr Version v2_0{2, 0, 0};
constexpr Version v2_5{2, 5, 0};

using Indices = std::vector<int64_t>;

PlainValue number(int64_t value) { return PlainValue{value, {}}; }
PlainValue text(const char* value) { return PlainValue{std::string(value), {}}; }
PlainValue list(std::initializer_list<int64_t> values) {
  PlainValue::List items;
  for (const int64_t value : values) {
    items.push_back(number(value));
  }
  return PlainValue{std::move(items), {}};
}

Indices taken(const PlainValue& value, const Version& lightning, int64_t count = 8) {
  const DeviceAnswer answer = devices_of_tpu(&value, lightning, count);
  CHECK(answer.verdict == DeviceAnswer::Verdict::accepted);
  return answer.indices;
}

std::string refusal(const PlainValue& value, const Version& lightning, int64_t count = 8) {
  const DeviceAnswer answer = devices_of_tpu(&value, lightning, count);
  CHECK(answer.verdict == DeviceAnswer::Verdict::refused);
  CHECK_FALSE(answer.remedy.empty());
  return answer.message;
}

const Indices all_eight = {0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

// fabric/accelerators/xla.py, _check_tpu_devices_valid, and its tests in 1.x (test_tpu_choice).
TEST_CASE("a TPU host gives one device, all of them, or one by its index") {
  CHECK(taken(number(8), v2_5) == all_eight);
  CHECK(taken(text("auto"), v2_5) == all_eight);
  CHECK(taken(text("8"), v1_9) == all_eight);
  CHECK(taken(number(1), v2_5) == Indices{0});
  CHECK(taken(text("1"), v1_9) == Indices{0});
  CHECK(taken(list({3}), v2_5) == Indices{3});
  CHECK(taken(list({0}), v2_0) == Indices{0});
  CHECK(taken(number(4), v2_5, 4) == Indices{0, 1, 2, 3});
  CHECK(devices_of_tpu(nullptr, v2_5, 8).indices == all_eight);
}

TEST_CASE("1.x counts TPU cores from 1") {
  CHECK(taken(list({1}), v1_9) == Indices{0});
  CHECK(taken(list({8}), v1_9) == Indices{7});
  CHECK(taken(text("1,"), v1_9) == Indices{0});
  for (const PlainValue& wrong :
       {number(2), number(10), number(-1), list({0}), list({9}), list({1, 8}), text("9, ")}) {
    CHECK(refusal(wrong, v1_9).starts_with("`tpu_cores` can only be 1, 8 or [<1-8>]"));
  }
}

TEST_CASE("three devices of eight are refused in Lightning's words") {
  CHECK(refusal(number(3), v2_5) ==
        "`devices` can only be 'auto', 1, 8 or [<0-7>] for TPUs. Got 3");
  CHECK(refusal(list({8}), v2_5).find("Got [8]") != std::string::npos);
  CHECK(refusal(number(8), v2_5, 4).find("1, 4 or [<0-3>]") != std::string::npos);
  CHECK(refusal(text("all"), v2_5).find("Got all") != std::string::npos);
}

// fabric/utilities/device_parser.py, _sanitize_gpu_ids: a Mac has the GPU 0.
TEST_CASE("MPS has one device") {
  const auto answer = [](const PlainValue& value) { return devices_of_mps(&value); };
  CHECK(devices_of_mps(nullptr).indices == Indices{0});
  CHECK(answer(number(1)).indices == Indices{0});
  CHECK(answer(number(-1)).indices == Indices{0});
  CHECK(answer(list({0})).indices == Indices{0});
  CHECK(answer(number(2)).message == "You requested gpu: [0, 1] But your machine only has: [0]");
  CHECK(answer(list({1})).message == "You requested gpu: [1] But your machine only has: [0]");
  CHECK(answer(number(0)).verdict == DeviceAnswer::Verdict::refused);
}

}  // namespace tpu_request_test
