#include "rehearsal/elastic/launcher_rule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "properties/finding.hpp"

namespace lockstep::cli {

namespace {

constexpr Time elastic_second{picoseconds_per_second};
// torch/distributed/elastic: monitor_interval of run.py; close(timeout) of multiprocessing/api.py;
// last_call and join of RendezvousTimeout; keep-alive every 5 s, three times.
constexpr Time monitor_interval = elastic_second / 10;
constexpr Time sigkill_after = elastic_second * 30;
constexpr Time last_call = elastic_second * 30;
constexpr Time join_timeout = elastic_second * 600;
constexpr Time keep_alive = elastic_second * 15;
/// Whose agent serves the store of the rendezvous: `--rdzv-endpoint` names it.
constexpr int32_t endpoint_node = 0;

std::string nodes_text(int64_t count) {
  return fmt::format("{} node{}", count, count == 1 ? "" : "s");
}

}  // namespace

ElasticWorld first_world(const ElasticLauncher& launcher, int64_t nodes_of_cluster) {
  ElasticWorld world;
  for (int64_t node = 0; node < nodes_of_cluster; ++node) {
    const bool has_place = node < launcher.most_nodes;
    (has_place ? world.nodes : world.spares).push_back(static_cast<int32_t>(node));
  }
  return world;
}

NextAttempt after_failure(const ElasticLauncher& launcher, const ElasticWorld& world,
                          const AttemptFailure& failure) {
  ElasticWorld next;
  next.restarts = world.restarts;
  for (const int32_t node : failure.failed) {
    if (!failure.lost.contains(node) && ++next.restarts[node] > launcher.max_restarts) {
      return {std::nullopt,
              launcher.max_restarts == 0
                  ? "torchrun restarts nothing (max_restarts: 0)"
                  : fmt::format("the agent of node {} has used its {} (max_restarts: {})", node,
                                launcher.max_restarts == 1
                                    ? "restart"
                                    : fmt::format("{} restarts", launcher.max_restarts),
                                launcher.max_restarts)};
    }
  }
  if (failure.lost.contains(endpoint_node) && world.nodes.size() + world.spares.size() > 1) {
    return {std::nullopt,
            fmt::format("the store in which the agents meet was on node {} (--rdzv-endpoint)",
                        endpoint_node)};
  }
  std::vector<int32_t> left;
  for (const std::vector<int32_t>* nodes : {&world.nodes, &world.spares}) {
    std::ranges::copy_if(*nodes, std::back_inserter(left),
                         [&](int32_t node) { return !failure.lost.contains(node); });
  }
  if (std::ssize(left) < launcher.least_nodes) {
    return {std::nullopt,
            left.empty() ? "no node is left"
                         : fmt::format("{} left, and nnodes asks for at least {}: the agents wait "
                                       "{} for another, and end",
                                       left.size() == 1 ? "1 node is"
                                                        : nodes_text(std::ssize(left)) + " are",
                                       launcher.least_nodes, time_text(join_timeout.count()))};
  }
  const auto places = static_cast<size_t>(std::min<int64_t>(std::ssize(left), launcher.most_nodes));
  next.nodes.assign(left.begin(), left.begin() + static_cast<int64_t>(places));
  next.spares.assign(left.begin() + static_cast<int64_t>(places), left.end());
  std::ranges::sort(next.nodes);
  return {std::move(next), ""};
}

// A rank that waits in a collective of NCCL runs no Python handler: SIGKILL ends it. The agents of
// other nodes see that one waits for a rendezvous when it has stopped its own workers.
Downtime downtime_of(const ElasticLauncher& launcher, const DowntimeFacts& facts) {
  Downtime down;
  down.start = facts.start_time;
  const bool is_smaller = facts.nodes_after < launcher.most_nodes;
  down.rendezvous = is_smaller ? last_call : Time{};
  if (facts.lost_node) {
    down.detection = facts.errors_at_once ? monitor_interval : facts.group_timeout;
    const bool still_counts = down.detection < keep_alive;
    down.rendezvous += still_counts ? keep_alive - down.detection : Time{};
    return down;
  }
  const Time of_node = facts.handles_sigterm && !facts.errors_at_once ? sigkill_after : Time{};
  down.detection = monitor_interval;
  down.stopping = launcher.processes_per_node > 1 ? of_node : Time{};
  if (facts.nodes_before > 1) {
    down.stopping += monitor_interval + of_node;
  }
  return down;
}

}  // namespace lockstep::cli
