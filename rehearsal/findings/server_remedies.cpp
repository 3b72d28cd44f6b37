#include "rehearsal/findings/server_remedies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/strategy/server/server_sites.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/run/servers.hpp"

namespace lockstep::cli {

namespace {

bool waits_at(const Finding& finding, std::string_view site) {
  return std::ranges::any_of(finding.did,
                             [site](const RankAction& did) { return did.site == site_id(site); });
}

RankSet lost_ranks(const OneRun& run) {
  RankSet lost;
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    if (run.result.ends[rank].kind == RankEnd::Kind::lost) {
      lost.add(static_cast<int32_t>(rank));
    }
  }
  return lost;
}

bool workers_have_ended(const OneRun& run) {
  const RankSet servers = servers_of(run);
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    const RankEnd::Kind end = run.result.ends[rank].kind;
    if (end != RankEnd::Kind::finished && end != RankEnd::Kind::lost &&
        !servers.contains(static_cast<int32_t>(rank))) {
      return false;
    }
  }
  return true;
}

StrategyArguments arguments_of(const OneRun& run) {
  const std::optional<TrainerSpec>& trainer = run.preparation.scenario->trainer;
  return trainer && trainer->strategy ? strategy_arguments_of(*trainer->strategy)
                                      : StrategyArguments();
}

// The mode that the scenario has is no advice.
std::string without_lost_worker(const OneRun& run) {
  const std::string again = "start the job again from a checkpoint";
  const std::string mode = arguments_of(run).text("mode", "sync");
  if (mode == "async") {
    return again;
  }
  const bool waits_for_all =
      run.preparation.gradients_of_update == run.preparation.data_parallel_size;
  return again + (mode == "batched" && !waits_for_all
                      ? "; mode: async trains on without the lost worker: it answers each "
                        "gradient by itself"
                      : "; mode: async, or batched with fewer gradients than workers, trains on "
                        "without the lost worker");
}

std::vector<std::string> fix_of(const OneRun& run, const Finding& finding) {
  if (finding.code == "LS106" && arguments_of(run).text("mode", "sync") == "sync") {
    return {"a worker with fewer batches goes on to the collective of the workers, and the",
            "others wait for its gradient: give every worker the same number of batches, take",
            "mode: async, or leave the collective out (enable_checkpointing: false)"};
  }
  if (finding.code == "LS106") {
    return {"a worker whose gradient waits for others never reaches the collective of the workers:",
            "let every gradient be answered (mode: sync or async), or leave the collective out"};
  }
  if (!lost_ranks(run).empty() && workers_have_ended(run)) {
    return {
        "the other workers have trained to their end, and the server waits for the lost one: end "
        "it, or start the job again from a checkpoint where the lost samples count"};
  }
  if (!lost_ranks(run).empty()) {
    return {without_lost_worker(run)};
  }
  if (arguments_of(run).boolean("join", true)) {
    return finding.fix;  // servers count the workers that are left
  }
  return {
      "give every worker the same number of batches, or write join: true: the server then "
      "counts the workers that are left"};
}

/// A wait that began because a server is gone.
class LostServer {
 public:
  LostServer(const OneRun& run, const RankSet& servers) : run_(run), servers_(servers) {
    const RankSet lost = lost_ranks(run);
    for (const int32_t rank : servers.ranks()) {
      (lost.contains(rank) ? lost_ : left_).add(rank);
    }
  }

  bool is_cause_of(const Finding& finding) const {
    const bool is_hang = finding.code == "LS101" || finding.code == "LS106";
    return is_hang && !lost_.empty() && !waiting_workers(finding).empty();
  }

  void explain(Finding& finding) const {
    const RankSet waiting = waiting_workers(finding);
    finding.ranks = waiting;
    finding.title = fmt::format(
        "{} wait{} forever for {}, {}", waiting.phrase(), waiting.size() == 1 ? "s" : "",
        lost_.phrase(),
        lost_.size() == 1 ? "a parameter server that " + lost_text(run_.result, lost_.first())
                          : std::string("parameter servers that were lost"));
    finding.why.text = fmt::format(
        "{} {} parameter server{}: a worker sends its gradient to every server, and waits until "
        "each has answered with its part of the weights",
        servers_.phrase(), servers_.size() == 1 ? "is the" : "are the",
        servers_.size() == 1 ? "" : "s");
    std::erase_if(finding.follows, [&](const std::string& follow) {
      return !left_.empty() && follow.starts_with(left_.phrase()) &&
             follow.find(" in recv") != std::string::npos;
    });
    finding.follows.insert(
        finding.follows.begin(),
        fmt::format("the weights and the optimizer's state of {} are gone: no worker has the "
                    "state",
                    lost_.phrase()));
    if (!left_.empty()) {
      finding.follows.insert(
          finding.follows.begin() + 1,
          fmt::format("{}, the other server{}, wait{} for the next gradients", left_.phrase(),
                      left_.size() == 1 ? "" : "s", left_.size() == 1 ? "s" : ""));
    }
    finding.fix = {
        "no mode trains on without a server. Let the launcher start all ranks again (launcher: "
        "{torchrun: {max_restarts: 3, ..}}), save weights and optimizer state on the servers, and "
        "load both there; or use strategy: ddp, where every rank has the weights"};
    finding.python.clear();
  }

 private:
  RankSet waiting_workers(const Finding& finding) const {
    RankSet waiting;
    for (const RankAction& did : finding.did) {
      if (did.site == site_id(server_sites::push) || did.site == site_id(server_sites::pull) ||
          did.site == site_id(server_sites::end)) {
        waiting.add(did.ranks);
      }
    }
    return waiting;
  }

  const OneRun& run_;
  const RankSet& servers_;
  RankSet lost_;
  RankSet left_;
};

}  // namespace

void complete_server_remedies(const OneRun& run, std::vector<Finding>& findings) {
  if (!run.ran || findings.empty()) {
    return;
  }
  const RankSet servers = servers_of(run);
  if (servers.empty()) {
    return;
  }
  const LostServer lost_server(run, servers);
  for (Finding& finding : findings) {
    const bool is_hang = finding.code == "LS101" || finding.code == "LS106";
    if (lost_server.is_cause_of(finding)) {
      lost_server.explain(finding);
    } else if (is_hang && waits_at(finding, server_sites::await)) {
      finding.fix = fix_of(run, finding);
    }
  }
}

}  // namespace lockstep::cli
