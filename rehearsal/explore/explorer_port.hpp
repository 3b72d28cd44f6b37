#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <vector>

#include "model/program/decorators.hpp"
#include "model/program/run.hpp"
#include "model/scenario/scenario.hpp"
#include "rehearsal/run/schedule.hpp"
#include "rehearsal/run/stop.hpp"

namespace lockstep::cli {

/// The `unknown`s of a scenario: what depends on data that it does not say.
std::set<SiteId> unknown_sites(const Scenario& scenario);

/// State that the ports of one run share. Only a world of one thread may be scripted; in a world of
/// threads, `script` stays unused and `taken` empty.
struct Exploration {
  std::vector<uint32_t> script;
  uint32_t other_choices = 0;  ///< behind the script
  std::vector<FreeChoice> taken;
  bool scripted = true;
  const Deadline* deadline = nullptr;
  std::atomic<bool> deadline_passed = false;
  std::atomic<uint32_t> steps = 0;  ///< of all ranks: each of many ranks may take few

  /// Looks at the clock now and then, and counts calls.
  bool must_stop();
};

/// Decides what is free as an exploration says, and watches the deadline.
class ExplorerPort final : public PortDecorator {
 public:
  ExplorerPort(Port& inner, Exploration& exploration)
      : PortDecorator(inner), exploration_(exploration) {}
  Ticket submit(std::span<const Op> ops) override;
  uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) override;
  /// What has a choice may go another way in every period.
  PeriodsLeftOut begins_period(const PeriodStart& start) override {
    return exploration_.taken.empty() ? PortDecorator::begins_period(start) : PeriodsLeftOut{};
  }

 private:
  void watch();

  Exploration& exploration_;
};

/// `program` of every rank behind an ExplorerPort. The views outlive the run.
struct RankView {
  RankView(Port& inner, Exploration& exploration) : port(inner, exploration), rank(port) {}
  ExplorerPort port;
  Rank rank;
};
ProgramOfRank explored(const ProgramOfRank& program, Exploration& exploration,
                       std::vector<std::unique_ptr<RankView>>& views, const Schedule& schedule);

}  // namespace lockstep::cli
