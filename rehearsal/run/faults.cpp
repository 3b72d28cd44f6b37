#include "rehearsal/run/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/scenario/hooks.hpp"

namespace lockstep::cli {

namespace {

// Signals that end a process unless it has a handler; neither Python nor Lightning has one.
bool ends_process(const std::string& signal) {
  static constexpr std::string_view signals[] = {"SIGKILL", "SIGABRT", "SIGBUS",  "SIGFPE",
                                                 "SIGILL",  "SIGQUIT", "SIGSEGV", "SIGHUP",
                                                 "SIGUSR1", "SIGUSR2", "SIGTERM"};
  return std::ranges::find(signals, signal) != std::end(signals);
}

// Lightning 2.0 and later note a SIGTERM, and act on it later.
bool is_noted(const FaultSpec& fault, const Preparation& preparation) {
  return fault.kind == FaultKind::signal && value_or(fault.signal, std::string()) == "SIGTERM" &&
         !preparation.scenario->is_bare_program() && preparation.lightning >= Version{2, 0, 0};
}

/// Plans one fault of the scenario.
class Planner {
 public:
  Planner(const FaultSpec& fault, int32_t number, const Preparation& preparation, World world,
          FaultPlan& plan)
      : fault_(fault),
        number_(number),
        preparation_(preparation),
        world_(world),
        bare_(preparation.scenario->is_bare_program()),
        noted_(is_noted(fault, preparation)),
        plan_(plan) {
    if (fault.at) {
      at_ = fault.at->value;
    }
  }

  void add() {
    const size_t before = plan_.problems.size();
    check();
    if (plan_.problems.size() != before) {
      return;
    }
    switch (fault_.kind) {
      case FaultKind::straggler: add_stragglers(); break;
      case FaultKind::slow_link: plan_.expected.emplace(number_, -1); break;
      case FaultKind::lost_node:
      case FaultKind::lost_rank: add_lost_ranks(); break;
      case FaultKind::signal: noted_ ? add_noted_signals() : add_lost_ranks(); break;
      default: add_planned(); break;
    }
  }

 private:
  using Kind = Problem::Kind;

  void complain(Kind kind, const std::string& message, const std::string& remedy) {
    plan_.problems.push_back(
        {kind, fault_.place, fmt::format("`{}`: {}", name_of(fault_.kind), message), remedy});
  }

  void check() {
    check_world();
    check_instant();
    check_duration();
    check_own();
    ranks_ = ranks();
  }

  // Threads take the time that this machine takes.
  void check_world() {
    const bool slows = fault_.kind == FaultKind::straggler || fault_.kind == FaultKind::slow_data ||
                       fault_.kind == FaultKind::slow_link;
    if (is_real(world_) && slows) {
      complain(Kind::unsupported, "times can be made longer only in a simulated world",
               "use --world simulated");
    }
  }

  void check_instant() {
    if (is_real(world_) && at_.kind == Instant::Kind::time && !at_.is_start()) {
      complain(Kind::unsupported, "a fault at a time needs simulated time",
               bare_ ? "use --world simulated"
                     : "use --world simulated, or write `at: step N` or `at: epoch N`");
    }
    if (bare_ && at_.kind != Instant::Kind::time) {
      complain(Kind::invalid, "a program of `cluster.ranks` has no steps and no epochs",
               "write a time: at: 2 ms");
    }
  }

  void check_duration() {
    if (!fault_.duration) {
      return;
    }
    switch (fault_.kind) {
      case FaultKind::straggler:
      case FaultKind::slow_data:
      case FaultKind::slow_link: return;
      case FaultKind::lost_rank:
      case FaultKind::lost_node:
      case FaultKind::signal:
        return complain(Kind::unsupported,
                        "a returning rank is restarted by its launcher, which is not modelled "
                        "yet",
                        "remove `for`");
      default: return complain(Kind::invalid, "it happens once and has no `for`", "remove `for`");
    }
  }

  void check_own() {
    if (fault_.kind == FaultKind::exception || fault_.kind == FaultKind::out_of_memory) {
      check_hook();
    } else if (fault_.kind == FaultKind::signal) {
      check_signal();
    } else if (fault_.kind == FaultKind::slow_data && bare_) {
      complain(Kind::invalid, "a program of `cluster.ranks` loads no data",
               "use `straggler`, or a longer `host`");
    }
    const bool by_rank = fault_.kind != FaultKind::slow_link && fault_.kind != FaultKind::lost_node;
    if (!by_rank && (fault_.rank || fault_.ranks)) {
      complain(Kind::invalid, "it affects no single rank", "remove `rank` and `ranks`");
    }
  }

  void check_hook() {
    const std::string name = hook();
    if (bare_ && name != "main") {
      complain(Kind::invalid,
               fmt::format("a program of `cluster.ranks` has no hook `{}`, only `main`", name),
               "write hook: main");
    } else if (!is_hook(name)) {
      complain(Kind::invalid, fmt::format("there is no hook `{}`", name), "write training_step");
    } else if (!is_called_hook(name)) {
      complain(Kind::unsupported, fmt::format("the hook `{}` is not called yet", name),
               "name another hook");
    }
  }

  void check_signal() {
    const std::string name = value_or(fault_.signal, std::string());
    const bool slurm = !bare_ && preparation_.placement.launch.launcher == "srun";
    const bool requeues = slurm && (name == "SIGUSR1" || (name == "SIGTERM" && !noted_));
    if (requeues || name == "SIGINT") {
      complain(Kind::unsupported,
               requeues
                   ? fmt::format("what Lightning does on {} under Slurm (a checkpoint, and the "
                                 "job queued again) is not modelled",
                                 name)
                   : "Lightning's handling of SIGINT (which differs by version) is not "
                     "modelled",
               "SIGKILL ends the process immediately");
    } else if (!ends_process(name)) {
      complain(Kind::invalid, fmt::format("there is no signal {} that ends a process", name),
               "write SIGKILL");
    } else if (fault_.hook) {
      check_hook();
    }
  }

  std::vector<int32_t> ranks() {
    const int32_t world_size = preparation_.options.world_size;
    std::vector<int32_t> all(static_cast<size_t>(world_size));
    std::iota(all.begin(), all.end(), 0);
    if (fault_.kind == FaultKind::slow_link) {
      return {};
    }
    if (fault_.kind == FaultKind::lost_node) {
      std::erase_if(all, [this](int32_t rank) {
        return place_of(preparation_.options, rank).node != value_or(fault_.node, int64_t{0});
      });
      if (all.empty()) {
        complain(Kind::invalid,
                 fmt::format("no rank is on node {}", value_or(fault_.node, int64_t{0})),
                 "nodes count from 0");
      }
      return all;
    }
    std::vector<int64_t> asked(all.begin(), all.end());
    if (fault_.rank) {
      asked = {fault_.rank->value};
    } else if (fault_.ranks && fault_.ranks->value.kind == RankSelection::Kind::listed) {
      asked = fault_.ranks->value.ranks;
    } else if (fault_.ranks && fault_.ranks->value.kind == RankSelection::Kind::others) {
      complain(Kind::invalid, "`others` says no ranks in a fault", "list the ranks");
    }
    std::vector<int32_t> found;
    for (const int64_t rank : asked) {
      if (rank < 0 || rank >= world_size) {
        complain(Kind::invalid, fmt::format("there is no rank {} among {}", rank, world_size),
                 fmt::format("ranks are 0 to {}", world_size - 1));
      } else {
        found.push_back(static_cast<int32_t>(rank));
      }
    }
    return found;
  }

  std::string hook() const { return value_or(fault_.hook, std::string("training_step")); }

  void add_stragglers() {
    for (const int32_t rank : ranks_) {
      plan_.stragglers.push_back({rank, value_or(fault_.slowdown, 1.0), at_,
                                  value_or(fault_.duration, Time::max()), number_});
      plan_.expected.emplace(number_, rank);
    }
  }

  // Time is the simulated world's; steps and epochs the program itself comes to.
  void add_lost_ranks() {
    for (const int32_t rank : ranks_) {
      plan_.expected.emplace(number_, rank);
      const bool anywhere = !fault_.call && !fault_.hook;
      if (at_.kind == Instant::Kind::time && world_ == World::simulated && anywhere) {
        plan_.lost_ranks.push_back({rank, at_.time, number_});
      } else {
        PlannedFault lost;
        lost.kind = PlannedFault::Kind::lost_rank;
        lost.submission = fault_.call ? fault_.call->value - 1 : PlannedFault::at_position;
        lost.at = at_;
        lost.hook = value_or(fault_.hook, std::string());
        lost.number = number_;
        plan_.planned[rank].push_back(lost);
      }
    }
  }

  // The launcher that made the other processes of the node passes the signal on to them.
  void add_noted_signals() {
    PlannedFault noted;
    noted.kind = PlannedFault::Kind::termination;
    noted.submission = PlannedFault::at_position;
    noted.at = at_;
    noted.hook = value_or(fault_.hook, std::string());
    noted.number = number_;
    std::set<int32_t> struck(ranks_.begin(), ranks_.end());
    const Launch& launch = preparation_.placement.launch;
    for (const int32_t rank : ranks_) {
      const Place place = place_of(preparation_.options, rank);
      if (place.local_rank == 0 && !launch.is_external() && launch.start == StartMethod::script) {
        for (int32_t local = 1; local < place.local_world_size; ++local) {
          struck.insert(rank + local);
        }
      }
    }
    if (struck.size() > ranks_.size()) {
      plan_.problems.push_back(
          {Kind::note, fault_.place,
           fmt::format("Lightning's launcher passes SIGTERM on from the first rank of a node: each "
                       "of the ranks {} is assumed to receive it {}",
                       fmt::join(struck, ", "),
                       noted.hook.empty() ? "when its own program has reached `at`"
                                          : "where its own `" + noted.hook + "` begins"),
           "launcher: torchrun passes nothing on"});
    }
    for (const int32_t rank : struck) {
      plan_.planned[rank].push_back(noted);
      plan_.expected.emplace(number_, rank);
    }
  }

  void add_planned() {
    PlannedFault planned;
    planned.at = at_;
    planned.number = number_;
    switch (fault_.kind) {
      case FaultKind::lost_message: planned.kind = PlannedFault::Kind::lost_message; break;
      case FaultKind::corrupted_value: planned.kind = PlannedFault::Kind::corrupted_value; break;
      case FaultKind::slow_data: planned.kind = PlannedFault::Kind::slow_data; break;
      case FaultKind::exception: planned.kind = PlannedFault::Kind::exception; break;
      default: planned.kind = PlannedFault::Kind::out_of_memory; break;
    }
    planned.submission = value_or(fault_.call, int64_t{1}) - 1;
    planned.slowdown = value_or(fault_.slowdown, 1.0);
    planned.duration = value_or(fault_.duration, Time::max());
    const bool raises =
        fault_.kind == FaultKind::exception || fault_.kind == FaultKind::out_of_memory;
    if (raises) {
      planned.hook = hook();
      planned.site = add_site(planned.hook);
      // `main` of a bare program begins once: whatever it submits then comes after `at`.
      planned.submission = bare_ && !at_.is_start() ? 0 : PlannedFault::at_position;
    }
    for (const int32_t rank : ranks_) {
      plan_.planned[rank].push_back(planned);
      plan_.expected.emplace(number_, rank);
    }
  }

  SiteId add_site(const std::string& in_hook) {
    Site site;
    site.description = fmt::format("injected {}", name_of(fault_.kind));
    site.file = fault_.place.file;
    site.line = fault_.place.line;
    site.column = fault_.place.column;
    site.hook = in_hook;
    return plan_.sites.add(site);
  }

  const FaultSpec& fault_;
  int32_t number_;
  const Preparation& preparation_;
  World world_;
  bool bare_;
  bool noted_;  ///< a signal that Lightning answers itself
  FaultPlan& plan_;
  Instant at_;
  std::vector<int32_t> ranks_;
};

// A corrupted gradient that carries no value changes nothing.
void note_missing_values(const Scenario& scenario, const Preparation& preparation,
                         FaultPlan& plan) {
  if (scenario.is_bare_program() || preparation.options.numerics) {
    return;
  }
  for (const FaultSpec& fault : scenario.faults) {
    if (fault.kind == FaultKind::corrupted_value) {
      plan.problems.push_back({Problem::Kind::note, fault.place,
                               "`corrupted_value` has no effect on gradients and parameters: "
                               "they carry no values here",
                               "write verify: {numerics: true}"});
    }
  }
}

}  // namespace

std::set<FaultKind> every_fault() {
  std::set<FaultKind> kinds;
  for (int kind = 0; kind < fault_kind_count; ++kind) {
    kinds.insert(static_cast<FaultKind>(kind));
  }
  return kinds;
}

void FaultPlan::add_to(sim::SimulationOptions& simulation) const {
  for (const LostRank& lost : lost_ranks) {
    simulation.lost_ranks.emplace_back(lost.rank, lost.at);
  }
  for (const sim::Straggler& straggler : stragglers) {
    simulation.faults_of_costs.push_back({straggler.rank, straggler.at, straggler.duration});
  }
}

// A rank that another one runs for suffers the same faults.
void FaultPlan::keep_those_that_run(const RankClasses& classes) {
  std::erase_if(stragglers, [&](const auto& each) { return !classes.is_first(each.rank); });
  std::erase_if(lost_ranks, [&](const auto& each) { return !classes.is_first(each.rank); });
  std::erase_if(planned, [&](const auto& each) { return !classes.is_first(each.first); });
}

void FaultPlan::add_struck(const RankClasses& classes,
                           std::set<std::pair<int32_t, int32_t>>& struck) const {
  for (const auto& [number, rank] : expected) {
    const bool has_rank = rank >= 0;
    if (has_rank &&
        struck.contains({number, classes.first(classes.of(static_cast<size_t>(rank)))})) {
      struck.emplace(number, rank);
    }
  }
}

FaultPlan plan_faults(const Scenario& scenario, const Preparation& preparation, World world) {
  FaultPlan plan;
  int32_t number = 0;
  for (const FaultSpec& fault : scenario.faults) {
    Planner(fault, number++, preparation, world, plan).add();
  }
  note_missing_values(scenario, preparation, plan);
  if (preparation.options.classes) {
    plan.keep_those_that_run(*preparation.options.classes);
  }
  return plan;
}

}  // namespace lockstep::cli
