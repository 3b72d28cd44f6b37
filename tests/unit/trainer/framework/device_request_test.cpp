#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/trainer/framework/device_request.hpp"

using namespace lockstep;

namespace device_request_test {

namespace {

using Indices = std::vector<int64_t>;
using Verdict = DeviceAnswer::Verdict;

constexpr Version era_1_4{1, 4, 9};
constexpr Version era_1_5{1, 5, 10};
constexpr Version era_1_6{1, 6, 5};
constexpr Version era_2{2, 6, 0};
constexpr auto gpus = DeviceArgument::gpus;
constexpr auto devices = DeviceArgument::devices;

PlainValue number(int64_t value) { return {value, {}}; }
PlainValue text(std::string value) { return {std::move(value), {}}; }
PlainValue list(const Indices& values) {
  PlainValue::List items;
  for (const int64_t value : values) {
    items.push_back(number(value));
  }
  return {std::move(items), {}};
}
PlainValue usable(int64_t count) {
  return {PlainValue::Map{{"find_usable_cuda_devices", number(count)}}, {}};
}

DeviceAnswer on_gpus(const PlainValue& value, Version version, DeviceArgument argument = devices,
                     int64_t visible = 4) {
  DeviceSituation situation;
  situation.lightning = version;
  situation.visible = visible;
  return devices_of(&value, argument, situation);
}

Indices chosen(const PlainValue& value, Version version, DeviceArgument argument = devices) {
  const DeviceAnswer answer = on_gpus(value, version, argument);
  INFO(text_of(value) + ": " + answer.message);
  CHECK(answer.verdict == Verdict::accepted);
  CHECK_FALSE(answer.no_gpu);
  return answer.indices;
}

bool is_no_gpu(const PlainValue& value, Version version, DeviceArgument argument) {
  const DeviceAnswer answer = on_gpus(value, version, argument);
  return answer.verdict == Verdict::accepted && answer.no_gpu;
}

Verdict verdict(const PlainValue& value, Version version, DeviceArgument argument = devices) {
  return on_gpus(value, version, argument).verdict;
}

const Indices all = {0, 1, 2, 3};

}  // namespace

// The rows of the tables are those of device_parser.py: an input in the three eras of Lightning, on
// four visible GPUs.
TEST_CASE("a number of GPUs is the first so many in every era") {
  CHECK(chosen(number(3), era_1_4, gpus) == Indices{0, 1, 2});
  CHECK(chosen(number(3), era_1_5, gpus) == Indices{0, 1, 2});
  CHECK(chosen(number(3), era_1_6, gpus) == Indices{0, 1, 2});
  CHECK(chosen(number(3), era_1_6) == Indices{0, 1, 2});
  CHECK(chosen(number(3), era_2) == Indices{0, 1, 2});
}

TEST_CASE("no GPU is legal for gpus and an error for devices since 1.6") {
  CHECK(is_no_gpu(number(0), era_1_4, gpus));
  CHECK(is_no_gpu(number(0), era_1_5, gpus));
  CHECK(is_no_gpu(number(0), era_1_6, gpus));
  CHECK(verdict(number(0), era_1_6) == Verdict::refused);
  CHECK(verdict(number(0), era_2) == Verdict::refused);
}

TEST_CASE("-1 is every visible GPU in every era, as a number and as a text") {
  for (const PlainValue& value : {number(-1), text("-1")}) {
    CHECK(chosen(value, era_1_4, gpus) == all);
    CHECK(chosen(value, era_1_5, gpus) == all);
    CHECK(chosen(value, era_1_6) == all);
    CHECK(chosen(value, era_2) == all);
  }
}

TEST_CASE("a list names GPUs in its order; since 1.5 each once") {
  CHECK(chosen(list({1, 3}), era_1_4, gpus) == Indices{1, 3});
  CHECK(chosen(list({3, 1}), era_1_5, gpus) == Indices{3, 1});
  CHECK(chosen(list({1, 3}), era_2) == Indices{1, 3});
  CHECK(chosen(list({1, 1}), era_1_4, gpus) == Indices{1, 1});
  CHECK(verdict(list({1, 1}), era_1_5, gpus) == Verdict::refused);
  CHECK(verdict(list({1, 1}), era_2) == Verdict::refused);
}

TEST_CASE("a text with commas is a list in every era") {
  for (const char* written : {"1, 3", "1,3", "1,3,"}) {
    CHECK(chosen(text(written), era_1_4, gpus) == Indices{1, 3});
    CHECK(chosen(text(written), era_1_5, gpus) == Indices{1, 3});
    CHECK(chosen(text(written), era_2) == Indices{1, 3});
  }
  CHECK(chosen(text("3,"), era_1_4, gpus) == Indices{3});
  CHECK(chosen(text("3,"), era_1_5, gpus) == Indices{3});
  CHECK(chosen(text("3,"), era_2) == Indices{3});
}

TEST_CASE("a text of one number is an index up to 1.4 and a count from 1.5 on") {
  CHECK(chosen(text("3"), era_1_4, gpus) == Indices{3});
  CHECK(on_gpus(text("3"), era_1_4, gpus).warning.find("from Lightning 1.5 on") !=
        std::string::npos);
  CHECK(chosen(text("3"), era_1_5, gpus) == Indices{0, 1, 2});
  CHECK(chosen(text("3"), era_1_6) == Indices{0, 1, 2});
  CHECK(chosen(text("3"), era_2) == Indices{0, 1, 2});
  CHECK(on_gpus(text("3"), era_2).warning.empty());
}

TEST_CASE("the text 0 is the first GPU, no GPU or an error") {
  CHECK(chosen(text("0"), era_1_4, gpus) == Indices{0});
  CHECK(is_no_gpu(text("0"), era_1_5, gpus));
  CHECK(is_no_gpu(text("0"), era_1_6, gpus));
  CHECK(verdict(text("0"), era_1_6) == Verdict::refused);
  CHECK(verdict(text("0"), era_2) == Verdict::refused);
}

TEST_CASE("an empty list is an error but for gpus from 1.5 on") {
  CHECK(verdict(list({}), era_1_4, gpus) == Verdict::refused);
  CHECK(is_no_gpu(list({}), era_1_5, gpus));
  CHECK(is_no_gpu(list({}), era_1_6, gpus));
  CHECK(verdict(list({}), era_1_6) == Verdict::refused);
  CHECK(verdict(list({}), era_2) == Verdict::refused);
}

TEST_CASE("auto came with 1.6 and is one GPU in a notebook of 2.x") {
  CHECK(verdict(text("auto"), era_1_5) == Verdict::refused);
  CHECK(chosen(text("auto"), era_1_6) == all);
  CHECK(chosen(text("auto"), era_2) == all);
  const PlainValue automatic = text("auto");
  DeviceSituation notebook;
  notebook.visible = 4;
  notebook.interactive = true;
  CHECK(devices_of(&automatic, devices, notebook).indices == Indices{0});
  CHECK_FALSE(devices_of(&automatic, devices, notebook).warning.empty());
  notebook.lightning = era_1_6;
  CHECK(devices_of(&automatic, devices, notebook).indices == all);
}

TEST_CASE("without an argument all GPUs are used from 1.6 on, and none is found before") {
  DeviceSituation situation;
  situation.visible = 4;
  CHECK(devices_of(nullptr, devices, situation).indices == all);
  situation.lightning = era_1_6;
  CHECK(devices_of(nullptr, devices, situation).indices == all);
  situation.lightning = era_1_5;
  CHECK(devices_of(nullptr, devices, situation).verdict == Verdict::refused);
  situation.cpu = true;
  CHECK(devices_of(nullptr, devices, situation).indices == Indices{0});
}

TEST_CASE("what is no int, text or list of ints is taken by no version") {
  const std::vector<PlainValue> wrong = {{true, {}},
                                         {2.5, {}},
                                         {PlainValue::List{PlainValue{}}, {}},
                                         {PlainValue::List{PlainValue{1.0, {}}}, {}},
                                         text("two"),
                                         text("1,x"),
                                         text("1, ,2"),
                                         text(""),
                                         number(-2)};
  for (const PlainValue& value : wrong) {
    for (const Version version : {era_1_4, era_1_5, era_1_6, era_2}) {
      INFO(text_of(value));
      CHECK(verdict(value, version) == Verdict::invalid);
    }
  }
}

TEST_CASE("an index beyond the visible GPUs is refused, but not under torchrun with one GPU") {
  CHECK(verdict(number(5), era_2) == Verdict::refused);
  CHECK(verdict(list({0, 4}), era_1_4, gpus) == Verdict::refused);
  CHECK(on_gpus(list({0, 4}), era_2).message.find("GPU 4 is requested") != std::string::npos);
  const PlainValue two = number(2);
  DeviceSituation elastic;
  elastic.visible = 1;
  CHECK(devices_of(&two, devices, elastic).verdict == Verdict::refused);
  elastic.elastic = true;
  CHECK(devices_of(&two, devices, elastic).indices == Indices{0, 1});
}

TEST_CASE("on CPU a number or a text of digits is a number of processes, and lists are refused") {
  DeviceSituation situation;
  situation.cpu = true;
  const auto processes = [&](const PlainValue& value) {
    return devices_of(&value, devices, situation);
  };
  CHECK(processes(number(3)).indices == Indices{0, 1, 2});
  CHECK(processes(text("3")).indices == Indices{0, 1, 2});
  CHECK(processes(text("auto")).indices == Indices{0});
  for (const PlainValue& value : {list({0, 1}), text("0,1"), number(-1), text("-1")}) {
    INFO(text_of(value));
    CHECK(processes(value).verdict == Verdict::refused);
  }
  CHECK(processes(number(0)).verdict == Verdict::refused);
}

TEST_CASE("auto_select_gpus takes the first GPUs that nobody holds") {
  DeviceSituation situation;
  situation.lightning = era_1_6;
  situation.visible = 4;
  situation.occupied = {0, 2};
  const PlainValue two = number(2);
  CHECK(devices_of(&two, devices, situation).verdict == Verdict::refused);  // GPU 0 is busy
  situation.auto_select = true;
  CHECK(devices_of(&two, devices, situation).indices == Indices{1, 3});
  const PlainValue all_free = number(-1);
  CHECK(devices_of(&all_free, devices, situation).indices == Indices{1, 3});
  const PlainValue three = number(3);
  CHECK(devices_of(&three, devices, situation).verdict == Verdict::refused);
}

TEST_CASE("find_usable_cuda_devices takes the first GPUs that nobody holds") {
  DeviceSituation situation;
  situation.visible = 4;
  situation.occupied = {0};
  const auto found = [&](int64_t count) {
    const PlainValue value = usable(count);
    return devices_of(&value, devices, situation);
  };
  CHECK(found(2).indices == Indices{1, 2});
  CHECK(found(-1).indices == Indices{1, 2, 3});
  CHECK(found(4).verdict == Verdict::refused);
  CHECK(found(0).verdict == Verdict::invalid);
  situation.lightning = era_1_6;
  CHECK(found(2).verdict == Verdict::refused);
}

TEST_CASE("CUDA_VISIBLE_DEVICES numbers the GPUs anew and ends at the first that is not there") {
  CHECK(visible_devices(std::nullopt, 4) == all);
  CHECK(visible_devices("2,3", 4) == Indices{2, 3});
  CHECK(visible_devices("3, 1", 4) == Indices{3, 1});
  CHECK(visible_devices("1,-1,2", 4) == Indices{1});
  CHECK(visible_devices("1,9,2", 4) == Indices{1});
  CHECK(visible_devices("1,1", 4).empty());
  CHECK(visible_devices("", 4).empty());
  CHECK(visible_devices("-1", 4).empty());
}

}  // namespace device_request_test
