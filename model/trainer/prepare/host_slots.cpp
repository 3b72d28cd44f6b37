#include "model/trainer/prepare/host_slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace lockstep {

namespace {

constexpr int64_t most_slots = 1'000'000;

/// What a launcher makes of its hosts.
struct HostRules {
  std::string_view launcher;
  bool needs_slots = false;    ///< `host:4`, never `host`
  bool takes_slots = true;     ///< false: names alone
  bool adds_repeated = false;  ///< a host that is named twice has the slots of both
  int64_t slots_alone = 1;     ///< of a host without a number
};

HostRules rules_of(const Object& launcher) {
  if (launcher.name == "horovodrun") {
    return {launcher.name, true, true, false, 1};
  }
  if (launcher.name == "mpirun") {
    return {launcher.name, false, true, true, 1};
  }
  const PlainValue* const given = launcher.find("nproc_per_node");
  const int64_t* const processes = given == nullptr ? nullptr : given->get_if<int64_t>();
  return {launcher.name, false, false, false, processes == nullptr ? 1 : *processes};
}

std::string_view trimmed_host(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  const size_t end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

// horovodrun's own pattern: letters, digits, `_`, `.` and `-`.
bool is_host_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' || letter == '-';
  });
}

std::optional<int64_t> slots_in(std::string_view digits) {
  int64_t slots = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), slots);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole ? std::optional(slots) : std::nullopt;
}

/// Reads the hosts of one launcher, up to the first mistake.
class HostReader {
 public:
  explicit HostReader(const Object& launcher) : rules_(rules_of(launcher)) {}

  HostList read(const PlainValue& value) {
    list_.place = value.place;
    if (const std::string* const text = value.get_if<std::string>()) {
      add_all(*text);
    } else if (const PlainValue::List* const items = value.get_if<PlainValue::List>()) {
      for (const PlainValue& item : *items) {
        add_item(item);
      }
      if (items->empty()) {
        fail("no host is given");
      }
    } else {
      fail(fmt::format("`{}` is neither a text nor a list of hosts", text_of(value)));
    }
    return std::move(list_);
  }

 private:
  void fail(const std::string& problem, const std::string& remedy = "") {
    if (list_.problem.empty()) {
      list_.problem = fmt::format("{}: {}", rules_.launcher, problem);
      list_.remedy = !remedy.empty()      ? remedy
                     : rules_.takes_slots ? "write hosts: \"host1:4,host2:4\""
                                          : "write host_list: \"host1,host2\"";
    }
  }

  void add_all(std::string_view text) {
    while (true) {
      const size_t comma = text.find(',');
      add_text(trimmed_host(text.substr(0, comma)));
      if (comma == std::string_view::npos) {
        return;
      }
      text.remove_prefix(comma + 1);
    }
  }

  void add_item(const PlainValue& item) {
    if (const int64_t* const slots = item.get_if<int64_t>()) {
      if (!rules_.takes_slots && *slots != rules_.slots_alone) {
        return fail(fmt::format("it starts {} processes on every host, and a host is given {}",
                                rules_.slots_alone, *slots));
      }
      return add(fmt::format("node{}", list_.hosts.size()), *slots);
    }
    if (const std::string* const text = item.get_if<std::string>()) {
      return add_text(trimmed_host(*text));
    }
    const PlainValue::Map* const map = item.get_if<PlainValue::Map>();
    const int64_t* const slots =
        map != nullptr && map->size() == 1 ? map->front().value.get_if<int64_t>() : nullptr;
    if (slots == nullptr || !rules_.takes_slots) {
      return fail(fmt::format("`{}` is no host", text_of(item)));
    }
    add(map->front().key, *slots);
  }

  void add_text(std::string_view text) {
    const size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    if (colon == std::string_view::npos && !rules_.needs_slots) {
      return add(std::string(name), rules_.slots_alone);
    }
    const std::optional<int64_t> slots =
        colon == std::string_view::npos ? std::nullopt : slots_in(text.substr(colon + 1));
    if (!rules_.takes_slots) {
      return fail(
          fmt::format("`{}` is no name of a host: nproc_per_node says how many processes "
                      "each has",
                      text));
    }
    if (!slots) {
      return fail(fmt::format("`{}` is not HOST:SLOTS", text));
    }
    add(std::string(name), *slots);
  }

  void add(std::string name, int64_t slots) {
    if (!is_host_name(name)) {
      return fail(name.empty() ? "a host has no name"
                               : fmt::format("`{}` is no name of a host", name));
    }
    if (slots < 1 || slots > most_slots) {
      return fail(fmt::format("the host {} has {} slots", name, slots),
                  slots < 1 ? "give it at least 1, or leave the host out"
                            : fmt::format("at most {}", most_slots));
    }
    const auto known = std::ranges::find(list_.hosts, name, &HostSlots::name);
    if (known == list_.hosts.end()) {
      list_.hosts.push_back({std::move(name), slots});
    } else if (rules_.adds_repeated) {
      known->slots += slots;
    } else {
      fail(fmt::format("the host {} is given twice", name),
           rules_.takes_slots
               ? fmt::format("write {}:{}, once", name, std::min(known->slots + slots, most_slots))
               : "name each host once");
    }
  }

  HostRules rules_;
  HostList list_;
};

}  // namespace

int64_t HostList::slots() const {
  int64_t all = 0;
  for (const HostSlots& host : hosts) {
    all += host.slots;
  }
  return all;
}

HostList hosts_of(const Object& launcher) {
  const PlainValue* const named = launcher.find("host_list");
  const PlainValue* const given = named != nullptr ? named : launcher.find("hosts");
  if (given == nullptr || given->is_null()) {
    return {};
  }
  HostList list = HostReader(launcher).read(*given);
  if (named != nullptr && launcher.find("hosts") != nullptr && list.problem.empty()) {
    list.problem = fmt::format("{}: `hosts` and `host_list` are both given", launcher.name);
    list.remedy = "leave one of them out";
  }
  return list;
}

RanksOfNodes fill_hosts(const HostList& list, int64_t processes) {
  RanksOfNodes filled;
  for (const HostSlots& host : list.hosts) {
    const int64_t here = std::min(host.slots, processes);
    if (here < 1) {
      break;
    }
    filled.push_back(static_cast<int32_t>(here));
    processes -= here;
  }
  return filled;
}

}  // namespace lockstep
