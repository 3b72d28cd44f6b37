#include "model/trainer/framework/tpu_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "model/trainer/framework/lightning_versions.hpp"

namespace lockstep {

namespace {

/// A number of devices, or the indices of some.
struct AskedDevices {
  bool is_list = false;
  std::vector<int64_t> numbers;
};

std::optional<int64_t> whole_number_in(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  text = text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

// "8" is a number, "8," a list.
std::optional<AskedDevices> asked_in(std::string_view text) {
  AskedDevices asked{text.find(',') != std::string_view::npos, {}};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::optional<int64_t> number = whole_number_in(part);
    if (!number && part.find_first_not_of(' ') != std::string_view::npos) {
      return std::nullopt;
    }
    if (number) {
      asked.numbers.push_back(*number);
    }
    begin = end + 1;
  }
  return asked;
}

std::optional<AskedDevices> asked_by(const PlainValue& value) {
  if (const int64_t* count = value.get_if<int64_t>()) {
    return AskedDevices{false, {*count}};
  }
  if (const std::string* text = value.get_if<std::string>()) {
    return asked_in(*text);
  }
  const PlainValue::List* list = value.get_if<PlainValue::List>();
  if (list == nullptr) {
    return std::nullopt;
  }
  AskedDevices asked{true, {}};
  for (const PlainValue& item : *list) {
    const int64_t* index = item.get_if<int64_t>();
    if (index == nullptr) {
      return std::nullopt;
    }
    asked.numbers.push_back(*index);
  }
  return asked;
}

DeviceAnswer accepted(int64_t first, int64_t count) {
  DeviceAnswer answer;
  answer.indices.resize(static_cast<size_t>(count));
  std::iota(answer.indices.begin(), answer.indices.end(), first);
  return answer;
}

bool asks_for_all(const PlainValue* value) {
  const std::string* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return value == nullptr || (text != nullptr && *text == "auto");
}

}  // namespace

DeviceAnswer devices_of_tpu(const PlainValue* value, const Version& lightning, int64_t count) {
  const bool counts_from_one = lightning < v2_0;
  if (asks_for_all(value)) {
    return accepted(0, count);
  }
  if (const std::optional<AskedDevices> asked = asked_by(*value); asked) {
    const int64_t number = asked->numbers.size() == 1 ? asked->numbers.front() : -1;
    const int64_t index = counts_from_one ? number - 1 : number;
    if (!asked->is_list && (number == 1 || number == count)) {
      return accepted(0, number);
    }
    if (asked->is_list && index >= 0 && index < count) {
      return accepted(index, 1);
    }
  }
  DeviceAnswer answer;
  answer.verdict = DeviceAnswer::Verdict::refused;
  answer.message =
      counts_from_one
          ? fmt::format("`tpu_cores` can only be 1, {0} or [<1-{0}>]: {1} is given", count,
                        text_of(*value))
          : fmt::format("`devices` can only be 'auto', 1, {} or [<0-{}>] for TPUs. Got {}", count,
                        count - 1, text_of(*value));
  answer.remedy = fmt::format("write {} for all of the host, or 1", count);
  return answer;
}

DeviceAnswer devices_of_mps(const PlainValue* value) {
  if (asks_for_all(value)) {
    return accepted(0, 1);
  }
  DeviceAnswer answer;
  answer.verdict = DeviceAnswer::Verdict::refused;
  answer.remedy = "write devices: 1";
  const std::optional<AskedDevices> asked = asked_by(*value);
  if (!asked || asked->numbers.empty() || (!asked->is_list && asked->numbers.front() == 0)) {
    answer.message = fmt::format(
        "`Trainer(devices={})` value is not a valid input using mps "
        "accelerator",
        text_of(*value));
    return answer;
  }
  std::vector<int64_t> indices = asked->numbers;
  if (!asked->is_list) {
    const int64_t number = indices.front();
    constexpr int64_t most_named = 16;
    indices = accepted(0, number == -1 ? 1 : std::clamp<int64_t>(number, 1, most_named)).indices;
  }
  if (indices == std::vector<int64_t>{0}) {
    return accepted(0, 1);
  }
  answer.message = fmt::format("You requested gpu: [{}] But your machine only has: [0]",
                               fmt::join(indices, ", "));
  return answer;
}

}  // namespace lockstep
