#include "cli/render/case_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/finding.hpp"
#include "rehearsal/outcome.hpp"
#include "rehearsal/run/node_memory.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

// "refused, LS501": with the code of the first error, where there is one.
std::string with_code(const std::string& verdict, const Rehearsal& rehearsal) {
  const auto first = std::ranges::find_if(rehearsal.findings, [](const Finding& finding) {
    return finding.level == Level::error && !finding.code.empty();
  });
  return first == rehearsal.findings.end() ? verdict : verdict + ", " + first->code;
}

std::string lack_text(const char* where, Bytes needed, Bytes there) {
  return fmt::format("does not fit: {}{} of {}", where, bytes_text(needed.count()),
                     bytes_text(there.count()));
}

std::string lack_of_memory(const Rehearsal& rehearsal) {
  const bool on_device = std::ranges::any_of(rehearsal.run.result.ends,
                                             [](const RankEnd& end) { return end.out_of_memory; });
  if (!on_device) {
    const std::vector<NodeMemory> nodes = node_memory_of(rehearsal.run);
    const NodeMemory& node = *fullest(nodes);
    if (!node.fits()) {
      return lack_text("host ", node.needed, node.capacity);
    }
    const std::vector<NodeMemory> drives = node_memory_of(rehearsal.run, drive_device);
    const NodeMemory& drive = *fullest(drives);
    return lack_text("NVMe ", drive.needed, drive.capacity);
  }
  const RankResults* rank = fullest_rank(rehearsal);
  const std::optional<Bytes> needed = rehearsal.results.advice.needed;
  if (rank == nullptr || rank->memory.capacity == Bytes::max()) {
    return "does not fit";
  }
  return needed ? lack_text("", *needed, rank->memory.capacity)
                : fmt::format("does not fit in {}", bytes_text(rank->memory.capacity.count()));
}

}  // namespace

const RankResults* fullest_rank(const Rehearsal& rehearsal) {
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  const auto found =
      std::ranges::max_element(ranks, {}, [](const RankResults& rank) { return rank.memory.peak; });
  return found == ranks.end() ? nullptr : &*found;
}

Bytes most_on_host(const Rehearsal& rehearsal) {
  Bytes most{};
  for (const RankResults& rank : rehearsal.results.ranks.distinct()) {
    most = std::max(most, rank.host_peak);
  }
  return most;
}

std::string verdict_on(const Rehearsal& rehearsal) {
  switch (outcome_of(rehearsal)) {
    case Outcome::predicted: return "";
    case Outcome::refused: return with_code("refused", rehearsal);
    case Outcome::invalid: return "invalid";
    case Outcome::unsupported: return "not modelled";
    case Outcome::undecided: return "undecided";
    case Outcome::out_of_memory: return lack_of_memory(rehearsal);
    case Outcome::hangs: return with_code("hangs", rehearsal);
    case Outcome::raises: return with_code("raises", rehearsal);
  }
  return "";
}

}  // namespace lockstep::cli
