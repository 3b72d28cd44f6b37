#include "sim/cost/nccl_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "sim/cost/nccl_algorithm.hpp"

namespace lockstep::sim {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return is_whole ? std::optional(value) : std::nullopt;
}

// Which places of `names` a list such as `ring,tree` or `^tree` leaves. Nothing: an unknown name,
// which is put into `unknown`.
template <size_t count>
std::optional<std::array<bool, count>> listed(std::string_view text,
                                              const std::array<std::string, count>& names,
                                              std::string& unknown) {
  const bool is_excluding = text.starts_with('^');
  std::array<bool, count> allowed{};
  allowed.fill(is_excluding);
  for (const std::string_view part : split(is_excluding ? text.substr(1) : text, ',')) {
    bool known = false;
    const std::string wanted = lower(part);
    for (size_t place = 0; place < count; ++place) {
      const bool is_family = wanted == "collnet" && names[place].starts_with("collnet");
      if (names[place] == wanted || is_family) {
        allowed[place] = !is_excluding;
        known = true;
      }
    }
    if (!known) {
      unknown = part;
      return std::nullopt;
    }
  }
  return allowed;
}

std::array<std::string, 7> algorithm_names() {
  std::array<std::string, 7> names;
  std::ranges::transform(nccl_algorithms(), names.begin(),
                         [](const NcclAlgorithm& each) { return lower(each.name); });
  return names;
}

constexpr std::array<std::string_view, 5> function_names = {"broadcast", "reduce", "allgather",
                                                            "reducescatter", "allreduce"};

/// Reads variables one after the other into settings.
class SettingsReader {
 public:
  explicit SettingsReader(NcclSettingsResult& result) : result_(result) {}

  void read(const NcclVariable& variable) {
    const std::string& name = variable.name;
    if (name == "NCCL_ALGO") {
      read_lists(variable, [this](NcclAllowed& allowed, std::string_view list, std::string& bad) {
        const auto found = listed(list, algorithm_names(), bad);
        allowed.algorithms = found.value_or(allowed.algorithms);
      });
    } else if (name == "NCCL_PROTO") {
      read_lists(variable, [](NcclAllowed& allowed, std::string_view list, std::string& bad) {
        const auto found = listed<nccl_protocols>(list, {"ll", "ll128", "simple"}, bad);
        allowed.protocols = found.value_or(allowed.protocols);
        allowed.names_ll128 = !list.starts_with('^') && allowed.protocols[1];
      });
    } else if (!read_switch(variable) && !read_number(variable)) {
      result_.ignored.push_back(name);
    }
  }

 private:
  // `LIST`, or `function:LIST;function:LIST`.
  template <class Apply>
  void read_lists(const NcclVariable& variable, const Apply& apply) {
    for (const std::string_view part : split(variable.value, ';')) {
      const size_t colon = part.find(':');
      const std::string function =
          lower(colon == std::string_view::npos ? std::string_view() : part.substr(0, colon));
      const auto place = std::ranges::find(function_names, function);
      if (!function.empty() && place == function_names.end()) {
        fail(variable, fmt::format("`{}` is no function of NCCL", function));
        return;
      }
      const std::string_view list = colon == std::string_view::npos ? part : part.substr(colon + 1);
      std::string unknown;
      for (size_t index = 0; index < function_names.size(); ++index) {
        if (function.empty() || function == function_names[index]) {
          apply(result_.settings.allowed[index], list, unknown);
        }
      }
      if (!unknown.empty() || list.empty()) {
        fail(variable, fmt::format("`{}` is unknown", unknown));
        return;
      }
    }
  }

  bool read_switch(const NcclVariable& variable) {
    NcclSettings& settings = result_.settings;
    struct Switch {
      std::string_view name;
      bool* target;
      bool value_of_one;
    };
    const Switch switches[] = {{"NCCL_P2P_DISABLE", &settings.has_peer_to_peer, false},
                               {"NCCL_SHM_DISABLE", &settings.has_shared_memory, false},
                               {"NCCL_IB_DISABLE", &settings.has_infiniband, false},
                               {"NCCL_NVLS_ENABLE", &settings.has_nvls, true},
                               {"NCCL_COLLNET_ENABLE", &settings.has_collnet, true}};
    if (variable.name == "NCCL_NET") {
      settings.has_infiniband = lower(variable.value) != "socket";
      return true;
    }
    const auto* const found = std::ranges::find(switches, variable.name, &Switch::name);
    if (found == std::end(switches)) {
      return false;
    }
    const std::optional<int64_t> value = whole(variable.value);
    if (!value || *value < 0 || *value > 2) {
      fail(variable, fmt::format("`{}` is neither 0 nor 1", variable.value));
      return true;
    }
    *found->target = (*value != 0) == found->value_of_one;
    return true;
  }

  bool read_number(const NcclVariable& variable) {
    constexpr int64_t channels_limit = 64;
    constexpr int64_t overhead_limit_ns = 1'000'000'000;
    constexpr int64_t socket_threads_limit = 16;
    constexpr int64_t sockets_limit = 64;
    NcclSettings& settings = result_.settings;
    const std::string& name = variable.name;
    const bool is_least = name == "NCCL_MIN_CTAS" || name == "NCCL_MIN_NCHANNELS";
    const bool is_most = name == "NCCL_MAX_CTAS" || name == "NCCL_MAX_NCHANNELS";
    const bool is_overhead = name == "NCCL_NET_OVERHEAD";
    const bool is_threads = name == "NCCL_SOCKET_NTHREADS";
    const bool is_sockets = name == "NCCL_NSOCKS_PERTHREAD";
    if (!is_least && !is_most && !is_overhead && !is_threads && !is_sockets) {
      return false;
    }
    const std::optional<int64_t> value = whole(variable.value);
    const int64_t least = is_overhead ? 0 : 1;
    const int64_t most = is_overhead  ? overhead_limit_ns
                         : is_threads ? socket_threads_limit
                         : is_sockets ? sockets_limit
                                      : channels_limit;
    if (!value || *value < least || *value > most) {
      fail(variable,
           fmt::format("`{}` is no whole number from {} to {}", variable.value, least, most));
    } else if (is_overhead) {
      settings.network_overhead_us = static_cast<double>(*value) * 1e-3;
    } else if (is_threads || is_sockets) {
      (is_threads ? settings.socket_threads : settings.sockets_per_thread) =
          static_cast<int>(*value);
    } else {
      (is_least ? settings.channels_min : settings.channels_max) = static_cast<int>(*value);
    }
    return true;
  }

  void fail(const NcclVariable& variable, const std::string& why) {
    const bool is_algorithm = variable.name == "NCCL_ALGO";
    const bool is_list = is_algorithm || variable.name == "NCCL_PROTO";
    result_.errors.push_back(
        {fmt::format("{}={}: {}", variable.name, variable.value, why),
         !is_list ? "correct the value"
         : is_algorithm
             ? "list Tree, Ring, CollnetDirect, CollnetChain, NVLS, NVLSTree or PAT; ^ excludes"
             : "list LL, LL128 or Simple; ^ excludes"});
  }

  NcclSettingsResult& result_;
};

}  // namespace

NcclSettingsResult read_nccl_settings(const std::vector<NcclVariable>& variables) {
  NcclSettingsResult result;
  SettingsReader reader(result);
  for (const NcclVariable& variable : variables) {
    if (variable.name.starts_with("NCCL_")) {
      reader.read(variable);
    }
  }
  return result;
}

}  // namespace lockstep::sim
