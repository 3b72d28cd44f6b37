#include "properties/finding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "model/core/units_text.hpp"

namespace lockstep {

std::string_view name_of(Level level) {
  switch (level) {
    case Level::error: return "error";
    case Level::warning: return "warning";
    case Level::note: return "note";
  }
  return "?";
}

std::string_view name_of(SiteRole role) {
  switch (role) {
    case SiteRole::subject: return "subject";
    case SiteRole::guard: return "guard";
    case SiteRole::other: return "other";
    case SiteRole::writer: return "writer";
    case SiteRole::exception: return "exception";
    case SiteRole::cause: return "cause";
  }
  return "?";
}

Finding finding_of(std::string code, Level level, std::string title) {
  Finding finding;
  finding.more = "lockstep explain " + code;
  finding.code = std::move(code);
  finding.level = level;
  finding.title = std::move(title);
  return finding;
}

void sort_findings(std::vector<Finding>& findings) {
  const auto key = [](const Finding& f) {
    return std::make_tuple(f.level, std::cref(f.code), f.call, std::cref(f.ranks), f.site(),
                           std::cref(f.title));
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&key](const Finding& a, const Finding& b) { return key(a) < key(b); });
}

std::string time_text(int64_t picoseconds) {
  struct Unit {
    int64_t size;
    const char* name;
  };
  constexpr std::array<Unit, 6> units = {{{60'000'000'000'000, "min"},
                                          {1'000'000'000'000, "s"},
                                          {1'000'000'000, "ms"},
                                          {1'000'000, "us"},
                                          {1'000, "ns"},
                                          {1, "ps"}}};
  for (const Unit& unit : units) {
    if (picoseconds >= unit.size) {
      return fmt::format("{:.4g} {}",
                         static_cast<double>(picoseconds) / static_cast<double>(unit.size),
                         unit.name);
    }
  }
  return "0 s";
}

std::string bytes_text(int64_t bytes) { return text_of(Bytes(bytes)); }

std::string times_text(int64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "time" : "times");
}

}  // namespace lockstep
