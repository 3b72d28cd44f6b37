#include "rehearsal/launch/host_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

namespace lockstep::cli {

namespace {

std::string text_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<int64_t> number_at(const std::string& text, size_t begin) {
  begin = text.find_first_not_of(' ', begin);
  int64_t number = 0;
  if (begin == std::string::npos ||
      std::from_chars(text.data() + begin, text.data() + text.size(), number).ec != std::errc() ||
      number < 0) {
    return std::nullopt;
  }
  return number;
}

// "max" where there is no limit.
std::optional<Bytes> left_in_control_group() {
  const auto limit = number_at(text_of("/sys/fs/cgroup/memory.max"), 0);
  const auto used = number_at(text_of("/sys/fs/cgroup/memory.current"), 0);
  return limit && used ? std::optional(Bytes(std::max<int64_t>(0, *limit - *used))) : std::nullopt;
}

}  // namespace

std::optional<Bytes> available_memory_in(const std::string& meminfo) {
  const std::string key = "MemAvailable:";
  const size_t found = meminfo.find(key);
  const auto kibibytes =
      found == std::string::npos ? std::nullopt : number_at(meminfo, found + key.size());
  if (!kibibytes || *kibibytes > std::numeric_limits<int64_t>::max() / 1024) {
    return std::nullopt;
  }
  return Bytes(*kibibytes * 1024);
}

std::optional<Bytes> available_host_memory() {
  std::optional<Bytes> available = available_memory_in(text_of("/proc/meminfo"));
  if (const auto left = left_in_control_group(); left && (!available || *left < *available)) {
    available = left;
  }
  return available;
}

}  // namespace lockstep::cli
