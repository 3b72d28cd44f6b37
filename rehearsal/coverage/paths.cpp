#include "rehearsal/coverage/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_set>

namespace lockstep::cli {

namespace {

constexpr int64_t rows_max = 200'000;  ///< of a lane: later steps repeat the first ones

// FNV-1a with 64 bits: the same on every machine.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char letter : text) {
    hash = (hash ^ static_cast<uint8_t>(letter)) * 1099511628211u;
  }
  return hash;
}

class Paths {
 public:
  void add(std::string_view text) { seen_.insert(hash_of(text)); }
  std::vector<uint64_t> sorted() const { return {seen_.begin(), seen_.end()}; }

 private:
  std::set<uint64_t> seen_;
};

// The place without its file and line, which differ between scenarios that do the same.
std::string step_of(const Sites& sites, SiteId id) {
  const Site* site = sites.find(id);
  return site == nullptr ? "" : fmt::format("{}|{}|{}", site->description, site->hook, site->part);
}

bool is_layer(Kernel kernel) {
  return kernel == Kernel::layer_forward || kernel == Kernel::layer_backward;
}

std::string layer_of(const Row& row, const Network* network) {
  const auto layer = static_cast<size_t>(row.tag);
  const bool known = is_layer(row.kernel) && network != nullptr && layer < network->layers.size();
  return known ? std::string(name_of(network->layers[layer].kind)) : "";
}

void add_lane(const Journal& journal, int32_t rank, int32_t lane, const Network* network,
              Paths& paths) {
  const LaneJournal& rows = journal.lane(rank, lane);
  std::unordered_set<uint64_t> seen;
  RowCursor cursor(rows);
  const int64_t count = std::min(rows.size(), rows_max);
  for (int64_t index = 0; index < count; ++index) {
    const Row row = cursor.next();
    const bool is_compute = row.row == RowKind::op && row.kind == OpKind::compute;
    const std::string key = fmt::format(
        "row {} {} {} {} {} {} {} {} {}", static_cast<int>(row.row), static_cast<int>(row.kind),
        static_cast<int>(row.dtype), static_cast<int>(row.reduction), static_cast<int>(row.kernel),
        lane > 0, row.group == world_group, row.stream.queue() > 0,
        is_compute ? layer_of(row, network) : "");
    // A place is looked up by text once for each id.
    const uint64_t here = hash_of(key) ^ (uint64_t{row.site.value} * 0x9E3779B97F4A7C15u);
    if (seen.insert(here).second) {
      paths.add(key + " " + step_of(journal.sites, row.site));
    }
  }
}

void add_journal(const OneRun& run, Paths& paths) {
  if (run.result.journal == nullptr) {
    return;
  }
  const Journal& journal = *run.result.journal;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      add_lane(journal, rank, lane, run.preparation.options.network, paths);
    }
  }
  for (const RankEnd& end : run.result.ends) {
    paths.add(fmt::format("end {} {}", static_cast<int>(end.kind), end.out_of_memory));
  }
}

void add_scenario(const Scenario& scenario, Paths& paths) {
  if (scenario.trainer && scenario.trainer->strategy) {
    const Object& strategy = *scenario.trainer->strategy;
    paths.add("strategy " + strategy.name);
    for (const ObjectArgument& argument : strategy.arguments) {
      paths.add(fmt::format("argument {}.{}", strategy.name, argument.name));
    }
  }
  for (const FaultSpec& fault : scenario.faults) {
    paths.add(fmt::format("fault {}", static_cast<int>(fault.kind)));
  }
}

}  // namespace

std::vector<uint64_t> paths_of(const Rehearsal& simulated) {
  Paths paths;
  if (!simulated.ran()) {
    return {};
  }
  add_scenario(*simulated.scenario, paths);
  add_journal(simulated.run, paths);
  for (const Finding& finding : simulated.findings) {
    paths.add("finding " + (finding.code.empty() ? finding.title : finding.code));
  }
  return paths.sorted();
}

std::vector<size_t> covering_cases(const std::vector<std::vector<uint64_t>>& paths) {
  std::vector<size_t> chosen;
  std::unordered_set<uint64_t> covered;
  const auto missing = [&](size_t index) {
    return std::count_if(paths[index].begin(), paths[index].end(),
                         [&](uint64_t path) { return covered.count(path) == 0; });
  };
  // What a case adds only shrinks, so one whose count still holds is the best of all.
  using Entry = std::pair<std::ptrdiff_t, size_t>;
  const auto later = [](const Entry& left, const Entry& right) {
    return left.first != right.first ? left.first < right.first : left.second > right.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  for (size_t index = 0; index < paths.size(); ++index) {
    if (paths[index].empty()) {
      chosen.push_back(index);
    } else {
      queue.push({missing(index), index});
    }
  }
  while (!queue.empty()) {
    const auto [count, index] = queue.top();
    queue.pop();
    const std::ptrdiff_t now = missing(index);
    if (now == 0) {
      continue;
    }
    if (now < count) {
      queue.push({now, index});
      continue;
    }
    chosen.push_back(index);
    covered.insert(paths[index].begin(), paths[index].end());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace lockstep::cli
