#include "model/trainer/framework/device_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace lockstep {

namespace {

using Verdict = DeviceAnswer::Verdict;

constexpr const char* any_number = "write devices: 1, or -1 for all of the node";
constexpr size_t most_digits = 7;

DeviceAnswer no(Verdict verdict, std::string message, std::string remedy = "") {
  DeviceAnswer answer;
  answer.verdict = verdict;
  answer.message = std::move(message);
  answer.remedy = std::move(remedy);
  return answer;
}

DeviceAnswer first_devices(int64_t count) {
  DeviceAnswer answer;
  answer.indices.resize(static_cast<size_t>(count));
  std::iota(answer.indices.begin(), answer.indices.end(), 0);
  return answer;
}

const char* name_of(DeviceArgument argument) {
  return argument == DeviceArgument::gpus ? "gpus" : "devices";
}

// Python's int(text): blanks around are legal.
std::optional<int64_t> number_in(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  text = text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  const bool negative = text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > most_digits ||
      digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const int64_t number = std::stoll(std::string(digits));
  return negative ? -number : number;
}

/// One request for GPUs, or for processes on CPU.
class Reading {
 public:
  Reading(DeviceArgument argument, const DeviceSituation& situation)
      : argument_(argument), situation_(situation) {}

  DeviceAnswer of(const PlainValue& value) const {
    if (const PlainValue::Map* map = value.get_if<PlainValue::Map>()) {
      return usable(*map, text_of(value));
    }
    if (means_none(value)) {
      return none(value);
    }
    if (const std::string* text = value.get_if<std::string>(); text != nullptr && *text == "auto") {
      return automatic();
    }
    return situation_.cpu ? processes(value) : gpus(value);
  }

  DeviceAnswer absent() const {
    if (since(1, 6) || situation_.cpu) {
      return automatic();
    }
    return no(Verdict::refused,
              "`accelerator: gpu` without `gpus` or `devices` finds no GPU before Lightning 1.6",
              "give the number: devices: 1");
  }

 private:
  bool since(int major, int minor) const {
    return situation_.lightning >= Version{major, minor, 0};
  }

  static bool means_none(const PlainValue& value) {
    const int64_t* count = value.get_if<int64_t>();
    const std::string* text = value.get_if<std::string>();
    const PlainValue::List* list = value.get_if<PlainValue::List>();
    return (count != nullptr && *count == 0) || (text != nullptr && number_in(*text) == 0) ||
           (list != nullptr && list->empty());
  }

  // 0, "0" and []. Up to 1.4 the text named the GPU 0 and the list was an error.
  DeviceAnswer none(const PlainValue& value) const {
    if (!situation_.cpu && !since(1, 5)) {
      if (value.get_if<PlainValue::List>() != nullptr) {
        return no(Verdict::refused, "GPUs requested but none are available: the list is empty",
                  "name a GPU: [0]");
      }
      if (value.get_if<std::string>() != nullptr) {
        return named({0},
                     "\"0\" is the GPU 0 here; from Lightning 1.5 on it means no GPU. Write [0]");
      }
    }
    if (!situation_.cpu && (argument_ == DeviceArgument::gpus || !since(1, 6))) {
      DeviceAnswer answer = first_devices(1);
      answer.no_gpu = true;
      return answer;
    }
    return no(Verdict::refused,
              fmt::format("Lightning takes at least 1 device, not {}", text_of(value)), any_number);
  }

  DeviceAnswer automatic() const {
    if (situation_.cpu) {
      return first_devices(1);
    }
    if (!since(1, 6)) {
      return no(Verdict::refused, "`devices: auto` came with Lightning 1.6", "write -1 for all");
    }
    if (since(2, 0) && situation_.interactive && situation_.visible > 1) {
      DeviceAnswer answer = first_devices(1);
      answer.warning =
          fmt::format("`auto` is 1 GPU in a notebook, not all {}: say how many with `devices`",
                      situation_.visible);
      return answer;
    }
    return all();
  }

  DeviceAnswer all() const {
    return situation_.visible == 0
               ? no(Verdict::refused, "no GPU is visible", "use accelerator: cpu")
               : named(first_devices(situation_.visible).indices, "");
  }

  // parse_cpu_cores: an int above 0, or a text of digits.
  DeviceAnswer processes(const PlainValue& value) const {
    const int64_t* count = value.get_if<int64_t>();
    const std::string* text = value.get_if<std::string>();
    const std::optional<int64_t> number = count != nullptr  ? std::optional(*count)
                                          : text != nullptr ? number_in(*text)
                                                            : std::nullopt;
    if (number && *number > 0) {
      return first_devices(*number);
    }
    return no(Verdict::refused,
              fmt::format("on CPU `devices` is a number of processes, not {}", text_of(value)),
              "write a number, such as devices: 2");
  }

  DeviceAnswer gpus(const PlainValue& value) const {
    if (const int64_t* count = value.get_if<int64_t>()) {
      return counted(*count);
    }
    if (const PlainValue::List* list = value.get_if<PlainValue::List>()) {
      return listed(*list, text_of(value));
    }
    if (const std::string* text = value.get_if<std::string>()) {
      return written(*text);
    }
    return no(Verdict::invalid,
              fmt::format("`{}` cannot be {}: Lightning takes an int, a text or a list of ints",
                          name_of(argument_), text_of(value)),
              any_number);
  }

  DeviceAnswer counted(int64_t count) const {
    if (count == -1) {
      return situation_.auto_select ? selected(free_devices().size()) : all();
    }
    if (count < 1) {
      return no(Verdict::invalid, fmt::format("training takes at least 1 device, not {}", count),
                any_number);
    }
    if (situation_.auto_select && !since(2, 0)) {
      return selected(static_cast<size_t>(count));
    }
    if (count > situation_.visible && !unchecked(static_cast<size_t>(count))) {
      return no(Verdict::refused,
                fmt::format("{} GPUs are requested, but a node has {}", count, situation_.visible),
                "ask for fewer, or set cluster.gpus");
    }
    return named(first_devices(count).indices, "");
  }

  DeviceAnswer listed(const PlainValue::List& list, const std::string& text) const {
    std::vector<int64_t> indices;
    for (const PlainValue& item : list) {
      const int64_t* index = item.get_if<int64_t>();
      if (index == nullptr) {
        return no(Verdict::invalid,
                  fmt::format("`{}` cannot be {}: a list holds indices of GPUs, as whole numbers",
                              name_of(argument_), text),
                  "write [0, 1]");
      }
      indices.push_back(*index);
    }
    return named(std::move(indices), "");
  }

  // With a comma a list; without, a count since 1.5 and one index before.
  DeviceAnswer written(const std::string& text) const {
    if (text == "-1") {
      return counted(-1);
    }
    if (text.find(',') != std::string::npos) {
      std::vector<int64_t> indices;
      for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = std::string_view(text).substr(begin, end - begin);
        const std::optional<int64_t> index = number_in(part);
        if (!part.empty() && !index) {
          return unreadable(text);
        }
        if (index) {
          indices.push_back(*index);
        }
        begin = end + 1;
      }
      return named(std::move(indices), "");
    }
    const std::optional<int64_t> number = number_in(text);
    if (!number) {
      return unreadable(text);
    }
    if (!since(1, 5)) {
      return named({*number},
                   fmt::format("\"{0}\" is the GPU {0} here; from Lightning 1.5 on it is the first "
                               "{0} GPUs. Write [{0}] or {0} to mean one of them in every version",
                               *number));
    }
    return counted(*number);
  }

  DeviceAnswer unreadable(const std::string& text) const {
    return no(Verdict::invalid,
              fmt::format("`{}` cannot be \"{}\": a text holds a number, or numbers with commas",
                          name_of(argument_), text),
              any_number);
  }

  // torchrun may show each process one GPU only; then Lightning does not look.
  bool unchecked(size_t count) const {
    return situation_.elastic && situation_.visible == 1 && count != 1;
  }

  DeviceAnswer named(std::vector<int64_t> indices, std::string warning) const {
    if (indices.empty()) {
      return no(Verdict::refused, "GPUs requested but none are available", any_number);
    }
    std::vector<int64_t> sorted = indices;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (since(1, 5) && twice != sorted.end()) {
      return no(Verdict::refused, fmt::format("the GPU {} is named twice", *twice),
                "name each GPU once");
    }
    for (const int64_t index : indices) {
      if ((index < 0 || index >= situation_.visible) && !unchecked(indices.size())) {
        return no(Verdict::refused,
                  fmt::format("GPU {} is requested, but {}", index, text_of_visible()),
                  "name existing GPUs, or set cluster.gpus");
      }
      if (is_occupied(index)) {
        return no(Verdict::refused,
                  fmt::format("the GPU {} is held by another process in exclusive mode", index),
                  since(2, 0) ? "write devices: {find_usable_cuda_devices: N}"
                              : "write auto_select_gpus: true beside the number");
      }
    }
    DeviceAnswer answer;
    answer.indices = std::move(indices);
    answer.warning = std::move(warning);
    return answer;
  }

  std::string text_of_visible() const {
    return situation_.visible == 0
               ? "no GPU is visible"
               : fmt::format("GPUs 0 to {} are visible", situation_.visible - 1);
  }

  bool is_occupied(int64_t index) const {
    const std::vector<int64_t>& occupied = situation_.occupied;
    return std::find(occupied.begin(), occupied.end(), index) != occupied.end();
  }

  std::vector<int64_t> free_devices() const {
    std::vector<int64_t> free;
    for (int64_t index = 0; index < situation_.visible; ++index) {
      if (!is_occupied(index)) {
        free.push_back(index);
      }
    }
    return free;
  }

  // A tensor is put on each GPU in turn; the first `count` on which that works are taken.
  DeviceAnswer selected(size_t count) const {
    std::vector<int64_t> free = free_devices();
    if (free.size() < count || free.empty()) {
      return no(Verdict::refused,
                fmt::format("{} free GPUs are requested, but of {} visible ones {} can be used",
                            count, situation_.visible, free.size()),
                "ask for fewer");
    }
    free.resize(count);
    return named(std::move(free), "");
  }

  DeviceAnswer usable(const PlainValue::Map& map, const std::string& text) const {
    const int64_t* count = map.size() == 1 && map.front().key == "find_usable_cuda_devices"
                               ? map.front().value.get_if<int64_t>()
                               : nullptr;
    if (count == nullptr || *count == 0 || *count < -1) {
      return no(Verdict::invalid, fmt::format("`devices` cannot be {}", text),
                "write {find_usable_cuda_devices: 2}");
    }
    if (!since(1, 9)) {
      return no(Verdict::refused, "find_usable_cuda_devices came with Lightning 1.9",
                "write auto_select_gpus: true beside the number");
    }
    if (situation_.cpu) {
      return no(Verdict::refused, "on CPU `devices` is a number of processes, not a list of GPUs",
                "write a number, such as devices: 2");
    }
    return selected(*count == -1 ? free_devices().size() : static_cast<size_t>(*count));
  }

  DeviceArgument argument_;
  const DeviceSituation& situation_;
};

}  // namespace

DeviceAnswer devices_of(const PlainValue* value, DeviceArgument argument,
                        const DeviceSituation& situation) {
  const Reading reading(argument, situation);
  return value == nullptr || value->is_null() ? reading.absent() : reading.of(*value);
}

std::vector<int64_t> visible_devices(const std::optional<std::string>& variable, int64_t present) {
  if (!variable) {
    return first_devices(present).indices;
  }
  std::vector<int64_t> visible;
  for (size_t begin = 0; begin <= variable->size();) {
    const size_t end = std::min(variable->find(',', begin), variable->size());
    const std::optional<int64_t> index =
        number_in(std::string_view(*variable).substr(begin, end - begin));
    if (!index || *index < 0 || *index >= present) {
      break;
    }
    if (std::find(visible.begin(), visible.end(), *index) != visible.end()) {
      return {};
    }
    visible.push_back(*index);
    begin = end + 1;
  }
  return visible;
}

}  // namespace lockstep
