// The whole program of one rank: the script, or what a server does, and what is kept of it.
#include <algorithm>

#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

Program Training::run_main() {
  log_.runs_trainer = membership_.runs_trainer;
  if (membership_.runs_trainer) {
    co_await run_script();
    co_await strategy_->dismiss_servers(rank_);
  } else {
    co_await strategy_->serve(rank_);
    log_.staleness = strategy_->staleness();
    log_.transfers = strategy_->transfers_per_step();
  }
  if (is_set_up_ || !membership_.runs_trainer) {
    log_parameters();
  }
}

Program Training::run_script() {
  interpreter_.make_on_host(program_.settings.on_gpus);
  co_await hook("__init__");
  interpreter_.make_on_host(false);
  const Hook* main = nullptr;
  if (program_.scenario->program) {
    main = program_.scenario->program->find("main");
  }
  if (main == nullptr) {
    co_await begin_hook("main");
    co_await run_trainer(StatementKind::fit);
  } else {
    co_await hook("main");
  }
  interpreter_.tell_unwaited();
  co_await interpreter_.synchronize();
  log_.known_differences = known_differences();
  if (loss_scale() != nullptr) {
    log_.skipped_steps = loss_scale()->skipped_steps();
  }
  if (is_set_up_) {
    log_.staleness = strategy_->staleness();
    if (log_.staleness) {
      log_.staleness->merge(staleness_left_out_);
    }
    log_.compression_error = strategy_->compression_error(rank_);
    log_.compiled_graphs = strategy_->compiled_graphs();
    log_.missing_loss = strategy_->missing_loss();
  }
}

// What servers hold are parts of what every worker has whole.
void Training::log_parameters() {
  const std::vector<HeldParameter> all = strategy_->held_parameters();
  if (membership_.runs_trainer) {
    const std::vector<Slice> whole = strategy_->replica().parameter_values();
    log_.holds_parts = program_.whole_network != nullptr || all.size() != whole.size() ||
                       std::ranges::any_of(all, [&whole](const HeldParameter& held) {
                         return held.value != whole[held.parameter];
                       });
  }
  if (membership_.runs_trainer) {
    log_.expert_loads = strategy_->replica().expert_loads();
  }
  if (!program_.keeps_parameters) {
    return;
  }
  log_.final_parameter_places.clear();  // of steps
  for (const HeldParameter& held : all) {
    log_.final_parameters.push_back(rank_.read(held.value));
    log_.final_parameter_places.push_back(held.value);
    if (log_.holds_parts || !membership_.runs_trainer) {
      log_.final_parts.push_back({held.parameter, held.first_element});
    }
  }
}

}  // namespace lockstep
