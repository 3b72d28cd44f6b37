#include "rehearsal/explore/unknown_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::cli {

SiteId unknown_taken_apart(const OneRun& run) {
  std::map<std::pair<SiteId, int32_t>, int64_t> turns;
  std::map<std::pair<SiteId, int64_t>, uint32_t> taken;
  for (const FreeChoice& choice : run.free_choices) {
    const int64_t turn = turns[{choice.site, choice.rank}]++;
    const auto [known, fresh] = taken.try_emplace({choice.site, turn}, choice.taken);
    if (!fresh && known->second != choice.taken) {
      return choice.site;
    }
  }
  return no_site;
}

std::string rank_choices(const OneRun& run, const Sites& sites) {
  const bool all = std::ranges::all_of(run.free_choices,
                                       [](const FreeChoice& choice) { return choice.taken != 0; });
  if (all && run.free_choices.size() > 1) {
    return "if every `unknown` is true";
  }
  std::string text;
  size_t told = 0;
  for (const FreeChoice& choice : run.free_choices) {
    if (choice.taken != 0 && told++ < 3) {
      text += fmt::format("{}rank {} takes `unknown` at {} as true", text.empty() ? "if " : ", ",
                          choice.rank, sites.place(choice.site));
    }
  }
  return told > 3 ? text + fmt::format(" and {} more", told - 3) : text;
}

}  // namespace lockstep::cli
