// Trainings whose ranks exchange something else than what ddp exchanges.
#include "tests/property/sharded_draws.hpp"

namespace lockstep::test {

ShardedCase any_training() {
  ShardedCase training;
  training.ranks = chosen_of<int32_t>({1, 2, 2, 3, 4, 4});
  training.hidden = 1 + drawn_below(9);
  training.freezes_first = once_in(5);
  training.adam = once_in(4);
  training.steps = 1 + drawn_below(3);
  training.accumulate = 1 + drawn_below(2);
  training.saves = once_in(2);
  return training;
}

// Names in place of order, and every micro-batch exchanges.
void draw_horovod(ShardedCase& training) {
  training.strategy = "horovod";
  training.accumulates_locally = false;
  training.arguments = {{"fusion_threshold_mb", chosen_of<double>({0, 1e-4, 128})},
                        {"cache_capacity", chosen_of<int64_t>({0, 2, 1024})},
                        {"backward_passes_per_step", int64_t{1 + drawn_below(2)}},
                        {"num_groups", int64_t{drawn_below(4)}}};
}

// The one algorithm that trains as ddp does.
void draw_gradient_allreduce(ShardedCase& training) {
  training.strategy = "bagua";
  training.arguments = {{"flatten", once_in(2)},
                        {"hierarchical", once_in(2)},
                        {"bucket_size_mb", chosen_of({0.0001, 0.0004, 10.0})}};
}

// The one mode that trains as ddp does.
void draw_synchronous_server(ShardedCase& training) {
  training.strategy = "parameter_server";
  training.servers = 1 + drawn_below(3);
  training.keeps_gradients = once_in(2);
  training.saves = false;  // its file has no state of the optimizer
  training.arguments = {{"servers", int64_t{training.servers}}};
}

namespace {

// What does not train as ddp does, as it adds, combines steps, rounds, or averages in parts.
void draw_operation_of_horovod(ShardedCase& training) {
  draw_horovod(training);
  training.arguments.erase(training.arguments.begin() + 2);  // the number of backwards is right
  const auto operation = chosen_of<std::string>({"average", "sum", "adasum"});
  training.arguments.emplace_back("op", operation);
  if (operation == "adasum") {  // of a power of two
    training.on_gpus = true;
    training.accumulate = 1;
    training.ranks = chosen_of<int32_t>({1, 2, 4});
    return;
  }
  if (operation == "average" && once_in(2)) {
    training.arguments.emplace_back("gradient_predivide_factor", 2.0);
  }
  training.arguments.emplace_back("compression", chosen_of<std::string>({"none", "fp16"}));
  if (training.ranks < 3) {
    return;
  }
  // Groups take the order of names from rank 0, which then has to be in the set.
  std::vector<std::string> sets = {"[0, 1]"};
  const bool has_groups = std::get<int64_t>(training.arguments[2].second) > 0;
  if (training.ranks == 4 && !has_groups && once_in(2)) {
    sets.emplace_back("[2, 3]");
  }
  if (once_in(2)) {
    training.arguments.emplace_back("process_sets", sets);
  }
}

void draw_averaging(ShardedCase& training) {
  training.strategy = "ddp";
  const bool averages_in_nodes = once_in(2);
  training.arguments = {{"ddp_comm_hook", averages_in_nodes ? std::string("post_localSGD_hook")
                                                            : std::string("noop_hook")}};
  if (averages_in_nodes) {
    training.arguments.emplace_back("ddp_comm_state.start_localSGD_iter", int64_t{drawn_below(3)});
  }
  if (training.ranks % 2 == 0 && once_in(2)) {
    const std::string sizes = "model_averager.HierarchicalModelAverager.period_group_size_dict.";
    training.arguments.emplace_back(sizes + "2", int64_t{2});
    if (training.ranks == 4) {
      training.arguments.emplace_back(sizes + "4", int64_t{4});
    }
    return;
  }
  training.arguments.emplace_back("model_averaging_period", int64_t{1 + drawn_below(3)});
  if (once_in(2)) {
    training.arguments.emplace_back("outer_optimizer.momentum", chosen_of<double>({0, 0.5}));
  }
}

void draw_algorithm(ShardedCase& training) {
  const auto algorithm = chosen_of<std::string>({"gradient_allreduce", "bytegrad", "decentralized",
                                                 "low_precision_decentralized", "qadam", "async"});
  training.arguments = {{"algorithm", algorithm}, {"bucket_size_mb", chosen_of({0.0001, 10.0})}};
  training.qadam = algorithm == "qadam";
  if (algorithm == "async") {
    training.arguments.emplace_back("sync_interval_ms", int64_t{1});
    training.arguments.emplace_back("warmup_steps", int64_t{drawn_below(3)});
    return;
  }
  const bool by_nodes = once_in(2);
  training.arguments.emplace_back("hierarchical", by_nodes);
  training.arguments.emplace_back("flatten", once_in(2));
  if (algorithm.find("decentralized") != std::string::npos) {
    training.arguments.emplace_back("communication_interval", int64_t{1 + drawn_below(2)});
  }
  const int32_t members = by_nodes ? (training.ranks == 4 ? 2 : 1) : training.ranks;
  if (algorithm == "decentralized" && members % 2 == 0) {
    training.arguments.emplace_back("peer_selection_mode",
                                    chosen_of<std::string>({"all", "shift_one"}));
  }
}

void draw_mode_of_server(ShardedCase& training) {
  const auto mode = chosen_of<std::string>({"sync", "batched", "async", "ssp"});
  training.arguments.emplace_back("mode", mode);
  if (mode == "batched") {
    training.arguments.emplace_back("batch", int64_t{1 + drawn_below(training.ranks)});
    training.arguments.emplace_back("drop_late", once_in(2));
  }
  if (mode == "ssp") {
    training.arguments.emplace_back("max_staleness", int64_t{drawn_below(3)});
  }
}

}  // namespace

rc::Gen<ShardedCase> bagua_cases() {
  return rc::gen::exec([] {
    ShardedCase training = any_training();
    training.strategy = "bagua";
    training.steps = 2 + drawn_below(3);
    training.keeps_gradients = once_in(2);
    draw_algorithm(training);
    return training;
  });
}

rc::Gen<ShardedCase> horovod_cases() {
  return rc::gen::exec([] {
    ShardedCase training = any_training();
    draw_operation_of_horovod(training);
    return training;
  });
}

rc::Gen<ShardedCase> averaging_cases() {
  return rc::gen::exec([] {
    ShardedCase training = any_training();
    training.steps = 2 + drawn_below(4);
    draw_averaging(training);
    return training;
  });
}

rc::Gen<ShardedCase> server_cases() {
  return rc::gen::exec([] {
    ShardedCase training = any_training();
    draw_synchronous_server(training);
    draw_mode_of_server(training);
    return training;
  });
}

}  // namespace lockstep::test
