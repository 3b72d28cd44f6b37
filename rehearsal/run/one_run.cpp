#include "rehearsal/run/one_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "properties/finding.hpp"
#include "rehearsal/elastic/kept_checkpoints.hpp"
#include "rehearsal/explore/explorer_port.hpp"
#include "rehearsal/run/faults.hpp"
#include "rehearsal/run/folding.hpp"
#include "rehearsal/run/kernels.hpp"
#include "rehearsal/run/process_run.hpp"
#include "rehearsal/run/run_basis.hpp"
#include "rehearsal/run/run_forecast.hpp"
#include "rehearsal/run/scenario_places.hpp"
#include "rehearsal/run/servers.hpp"
#include "rehearsal/run/steps_of_run.hpp"
#include "rehearsal/run/value_memory.hpp"
#include "sim/simulation.hpp"
#ifdef LOCKSTEP_HAS_GLOO
#include "backend/gloo/world.hpp"
#endif

namespace lockstep::cli {

namespace {

WorldAbilities abilities_of(const RunRequest& request, const Folding& folding) {
  WorldAbilities abilities{.faults = every_fault()};
  abilities.calibration = true;  // a real world has times of its own
  abilities.computes_layers = request.world == World::processes;
  abilities.repeats_operations = request.repeats_processes;
  abilities.arithmetic = request.arithmetic;
  abilities.runs_columns = folding.columns;
  abilities.runs_classes = request.world == World::simulated && folding.ranks &&
                           request.schedule.late_rank < 0 && request.replay == nullptr;
  abilities.keeps_steps = request.keeps_steps;
  abilities.attempt = request.attempt;
  abilities.stands_for = request.stands_for;
  abilities.gathers_rows = request.gathers_rows;
  abilities.joins_evaluation = request.joins_evaluation;
  abilities.clips_as = request.clips_as;
  abilities.scales_for = request.scales_for;
  abilities.scales_no_loss = request.scales_no_loss;
  abilities.groups_experts = request.groups_experts;
  if (request.deadline != nullptr) {
    abilities.stop_asked = [deadline = request.deadline] { return deadline->passed(); };
    abilities.value_budget = request.deadline->values();
  }
  return abilities;
}

void add_problems(OneRun& run, const std::vector<Problem>& problems) {
  run.problems.insert(run.problems.end(), problems.begin(), problems.end());
}

bool may_run(const OneRun& run) {
  return run.preparation.runnable() && std::ranges::none_of(run.problems, &Problem::stops);
}

SourcePlace place_of_machine(const Scenario& scenario) {
  if (scenario.cluster) {
    return scenario.cluster->place;
  }
  return scenario.trainer ? scenario.trainer->place : SourcePlace{scenario.file, 0, 0};
}

sim::CostOptions cost_options(const OneRun& run, const RunRequest& request, const FaultPlan& faults,
                              const Calibration* calibration) {
  sim::CostOptions options;
  options.world_size = run.preparation.options.world_size;
  options.ranks_per_node = run.machine.ranks_per_node;
  options.ranks_of_nodes = run.machine.ranks_of_nodes;
  options.devices_per_rank = run.preparation.options.devices_per_rank;
  options.algorithms = run.machine.algorithms;
  options.nccl = run.machine.nccl;
  options.on_gpus = !run.preparation.placement.cpu;
  options.stragglers = faults.stragglers;
  options.calibration = calibration;
  options.network = run.preparation.options.network;  // of what a rank has: its layers may be cut
  options.end = request.end;
  return options;
}

// An order that is drawn differs from period to period.
bool may_leave_out(const OneRun& run, const RunRequest& request) {
  const RunOptions& options = run.preparation.options;
  return !request.schedule.is_drawn() && !options.check && options.replay == nullptr &&
         request.replay == nullptr;
}

void simulate(OneRun& run, const Scenario& scenario, const RunRequest& request,
              const FaultPlan& faults, const ProgramOfRank& program, Folding& folding) {
  const NamedCalibration named = calibration_of(scenario, run.machine);
  add_problems(run, named.problems);
  if (!named.problems.empty()) {
    return;
  }
  sim::CostOptions options = cost_options(run, request, faults, named.calibration.get());
  options.classes = run.preparation.options.classes;
  options.folds_links = folding.links;
  const auto kernels = kernels_of(scenario, run.machine, options);
  sim::CostsResult built = costs_with(kernels, run.machine.cluster, options);
  for (const ClusterError& error : built.errors) {
    run.problems.push_back(
        {Problem::Kind::invalid, place_of_machine(scenario), error.message, error.remedy});
  }
  if (!built.errors.empty()) {
    return;
  }
  sim::Costs& costs = built.costs;
  run.basis = run.preparation.assumptions;
  std::ranges::copy(basis_of(run.machine, costs), std::back_inserter(run.basis));
  sim::SimulationOptions simulation;
  simulation.compute = costs.compute.get();
  simulation.communication = &costs.pricing();
  simulation.launch_overhead = costs.launch_overhead;
  simulation.contention = kernels ? kernels->constants[sim::KernelTerm::contention] : 0;
  simulation.tie_seed = request.schedule.tie_seed;
  simulation.drawn_before = request.schedule.drawn_before;
  simulation.any_source_choices = request.schedule.sources;
  simulation.any_source_last = request.schedule.sources_last;
  simulation.any_source_alternatives = &run.source_alternatives;
  faults.add_to(simulation);
  simulation.observer = costs.observer();
  simulation.link_faults = slow_links(scenario, *costs.communication, run.machine.cluster);
  simulation.leaves_out_periods = may_leave_out(run, request);
  simulation.memory_alone = request.memory_alone;
  simulation.rounds_otherwise = request.rounds_otherwise;
  run.preparation.options.device_memory = costs.device_memory;
  WeightObserver weights(run.preparation.log.get());
  simulation.steps = WeightObserver::sees(run.preparation.options) ? &weights : nullptr;
  simulation.stop_asked = [&network = *costs.communication, asked = stop_asked(run, request)] {
    return !network.is_exact() || !network.are_columns_alike() || asked();
  };
  try {
    run.result = sim::simulate(run.preparation.options, simulation, program);
    run.weight_spreads = weights.spreads();
    if (costs.slowed != nullptr) {
      run.result.struck_faults.merge(costs.slowed->struck());
    }
    tell_calibration(run, named, costs);
    folding.links = folding.links && costs.communication->is_exact();
    folding.columns = folding.columns && costs.communication->are_columns_alike();
    run.ran = true;
  } catch (const sim::WorldGivenUp&) {
    run.undecided = request.deadline->reason();
  } catch (const ValueBudgetExceeded&) {
    run.undecided = text_of_exceeded(*request.deadline->values(), run.preparation.sites);
  }
}

bool refuses_ranks(OneRun& run, const std::string& where, int32_t most) {
  const int32_t ranks = run.preparation.options.world_size;
  if (ranks > most) {
    run.problems.push_back(
        {Problem::Kind::unsupported,
         {run.preparation.scenario->file, 0, 0},
         fmt::format("{} ranks are too many for {}: {} at most", ranks, where, most),
         "use --world simulated, or fewer ranks"});
  }
  return ranks > most;
}

void run_on_threads(OneRun& run, const ProgramOfRank& program) {
  if (!has_thread_world()) {
    run.problems.push_back(
        {Problem::Kind::unsupported,
         {run.preparation.scenario->file, 0, 0},
         "this program was built without Gloo, so --world threads is not available",
         "install libgloo and build again, or use --world simulated"});
    return;
  }
  if (refuses_ranks(run, "threads of one process", thread_ranks_max)) {
    return;
  }
#ifdef LOCKSTEP_HAS_GLOO
  backend::GlooOptions options;
  options.deadline = std::chrono::milliseconds(3'000);
  try {
    run.result = backend::run(run.preparation.options, options, program);
    run.ran = true;
  } catch (const backend::WorldUnavailable& error) {
    run.world_failure = error.what();
  }
#else
  static_cast<void>(program);
#endif
}

std::string limit_reached(const OneRun& run, const Exploration& exploration) {
  if (!run.store->failure().empty()) {
    return run.store->failure();
  }
  if (const Deadline* const deadline = exploration.deadline) {
    if (deadline->values()->exceeded()) {
      return text_of_exceeded(*deadline->values(), run.preparation.sites);
    }
    if (exploration.deadline_passed || deadline->passed()) {
      return deadline->reason();
    }
  }
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  const auto stopped = std::ranges::find_if(ranks, &RankLog::statement_limit_reached);
  if (stopped == ranks.end()) {
    return "";
  }
  return fmt::format("rank {} was stopped after {} statements, perhaps in an endless loop",
                     stopped - ranks.begin(), stopped->statements - 1);
}

// A program ends by whatever it throws; this only the sizes of the scenario can cause.
bool overflowed(const RunResult& result) {
  return std::any_of(result.ends.begin(), result.ends.end(), [](const RankEnd& end) {
    return end.kind == RankEnd::Kind::raised && end.message == QuantityOverflow().what();
  });
}

// The simulated run of what is to run for real; of a run of processes its operations alone.
OneRun counted_by_simulation(const Scenario& scenario, const RunRequest& request) {
  RunRequest simulated;
  simulated.deadline = request.deadline;
  simulated.attempt = request.attempt;
  if (simulated.attempt.store) {
    simulated.attempt.store = std::make_shared<MemoryCheckpoints>();
  }
  simulated.repeats_processes = request.world == World::processes;
  simulated.arithmetic = simulated.repeats_processes ? Arithmetic::never : Arithmetic::always;
  return run_once(scenario, simulated);
}

void run_for_real(OneRun& run, const Scenario& scenario, const RunRequest& request,
                  const ProgramOfRank& program) {
  if (request.world == World::processes && request.real == nullptr &&
      ((request.ranks_max && refuses_ranks(run, "this command", *request.ranks_max)) ||
       refuses_processes(run))) {  // before a simulation that such a number would make long
    return;
  }
  const OneRun counted =
      request.real == nullptr ? counted_by_simulation(scenario, request) : OneRun();
  // Sizes and times that do not fit in 64 bits show when they are added up, as the simulation does;
  // a scenario that is bad input there is bad input here too.
  std::ranges::copy_if(
      counted.problems, std::back_inserter(run.problems),
      [](const Problem& problem) { return problem.kind == Problem::Kind::invalid; });
  if (!may_run(run)) {
    return;
  }
  run.preparation.options.device_memory = run.machine.cluster.node.device.memory;
  if (request.world == World::threads) {
    run_on_threads(run, program);
  } else {
    run_on_processes(run, request, counted, program);
  }
}

}  // namespace

bool has_thread_world() {
#ifdef LOCKSTEP_HAS_GLOO
  return true;
#else
  return false;
#endif
}

const StrategyRegistry& strategies() {
  static const StrategyRegistry registry = all_strategies();
  return registry;
}

namespace {

void set_limits(OneRun& run, const RunRequest& request) {
  RunOptions& options = run.preparation.options;
  options.value_budget = request.deadline == nullptr ? nullptr : request.deadline->values();
  run.store = std::make_shared<TemporaryStore>(
      TemporaryStore::usual_folder(), TemporaryStore::usual_bytes_max,
      [progress = request.progress](const TemporaryStore& store) {
        if (progress != nullptr) {
          progress->announce(
              fmt::format("the journal goes on in a temporary file in {}, of {} at most",
                          store.folder(), bytes_text(store.bytes_max())));
        }
      });
  options.journal = {request.lists, true, run.store, request.journal_bytes_max};
}

bool refuse_overflow(OneRun& run, const Scenario& scenario) {
  if (!overflowed(run.result)) {
    return false;
  }
  run.ran = false;
  run.problems.push_back({Problem::Kind::invalid,
                          {scenario.file, 0, 0},
                          QuantityOverflow().what(),
                          "make the sizes, counts or times of the scenario smaller"});
  return true;
}

OneRun run_as_prepared(const Scenario& scenario, const RunRequest& request, Folding& folding) {
  OneRun run;
  run.world = request.world;
  run.attempt = request.attempt;
  if (request.deadline != nullptr) {
    request.deadline->values()->begin_run();
  }
  run.preparation = prepare(scenario, strategies(), abilities_of(request, folding));
  add_problems(run, run.preparation.problems);
  if (!may_run(run)) {
    return run;
  }
  const FaultPlan faults = plan_faults(scenario, run.preparation, request.world);
  add_problems(run, faults.problems);
  run.machine = machine_of(run.preparation);
  add_problems(run, run.machine.problems);
  if (run.machine.problems.empty()) {
    add_problems(run, problems_of_links(scenario, run.machine.cluster));
  }
  if (!may_run(run)) {
    return run;
  }
  RunOptions& options = run.preparation.options;
  options.faults = faults.planned;
  set_limits(run, request);
  options.replay = request.replay;
  Exploration exploration;
  exploration.script = request.schedule.free_choices;
  exploration.other_choices = request.schedule.other_choices;
  exploration.scripted = request.world == World::simulated;
  exploration.deadline = request.deadline;
  std::vector<std::unique_ptr<RankView>> views(static_cast<size_t>(options.world_size));
  const ProgramOfRank program =
      explored(run.preparation.program, exploration, views, request.schedule);
  if (request.world != World::simulated) {
    run_for_real(run, scenario, request, program);
  } else if (!request.simulated_ranks_max || simulated_ranks(run) <= *request.simulated_ranks_max) {
    tell_forecast(run, scenario, request);
    simulate(run, scenario, request, faults, program, folding);
  }
  if (!run.ran || refuse_overflow(run, scenario)) {
    return run;
  }
  run.preparation.sites.merge(faults.sites);
  if (run.preparation.options.classes) {
    faults.add_struck(*run.preparation.options.classes, run.result.struck_faults);
  }
  run.unstruck = notes_on_unstruck(scenario, faults, run.result, servers_of(run));
  add_problems(run, run.unstruck);
  run.free_choices = std::move(exploration.taken);
  run.undecided = limit_reached(run, exploration);
  add_places_of_keys(*run.preparation.scenario, run.preparation.sites);
  if (run.result.journal) {
    run.result.journal->sites.merge(run.preparation.sites);
    run.result.journal->stream_names = run.preparation.stream_names;
  }
  return run;
}

}  // namespace

OneRun run_once(const Scenario& scenario, const RunRequest& request) {
  Folding folding{.links = request.folds_links, .ranks = request.runs_classes};
  for (;;) {
    const Folding tried = folding;
    OneRun run = run_as_prepared(scenario, request, folding);
    if (is_answer(run, tried, folding)) {
      run.folds_links = folding.links;
      return run;
    }
  }
}

}  // namespace lockstep::cli
