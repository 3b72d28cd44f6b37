#include "model/strategy/data_parallel/ddp_construction.hpp"

#include "model/strategy/data_parallel/ddp_sites.hpp"

namespace lockstep {

Program verify_parameters(Rank& rank, const Replica& replica) {
  return verify_parameters(rank, replica, {}, rank.world_size());
}

// Of a stage of a pipeline those that it holds.
Program verify_parameters(Rank& rank, const Replica& replica, ReducingGroup group, int32_t ranks) {
  int64_t count = 0;
  int64_t dimensions = 0;
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica.parameters()[index];
    if (parameter.trainable && group.reduces(replica, index)) {
      ++count;
      dimensions += std::ssize(replica.network().parameter(parameter.place).shape);
    }
  }
  const Purpose purpose = replica.plan().numerics ? Purpose::metric : Purpose::communication;
  const Slice own = rank.allocate(purpose, DType::int64, 1);
  const Slice all = rank.allocate(purpose, DType::int64, ranks);
  rank.write(own, Values::of(DType::int64, {static_cast<double>(count)}));
  const Ticket counted =
      rank.all_gather(group.group, own, all, {group.on, {}, site_id(ddp_sites::count_parameters)});
  co_await rank.settle(counted);
  rank.release(own);
  rank.release(all);

  // Sizes and strides.
  const Slice shapes = rank.allocate(Purpose::communication, DType::int64, 2 * dimensions);
  const Ticket compared = rank.broadcast(group.group, shapes, group.first_rank,
                                         {group.on, {}, site_id(ddp_sites::compare_shapes)});
  co_await rank.settle(compared);
  rank.release(shapes);
}

std::vector<Slice> module_state_of(const Replica& replica, bool buffers) {
  std::vector<Slice> state = replica.parameter_values();
  if (buffers) {
    const std::vector<Slice> others = replica.state().buffer_values();
    state.insert(state.end(), others.begin(), others.end());
  }
  return state;
}

namespace {

Bytes bucket_cap_of(double mebibytes) {
  constexpr double most_mebibytes = 1e9;  // a petabyte
  if (!(mebibytes > 0) || mebibytes > most_mebibytes) {
    throw ArgumentProblem("strategy argument bucket_cap_mb must be above 0, at most 1e9",
                          "bucket_cap_mb");
  }
  return Bytes(static_cast<int64_t>(mebibytes * 1024 * 1024));
}

}  // namespace

ReducerOptions reducer_options_from(const StrategyArgumentReader& read) {
  ReducerOptions options;
  options.find_unused_parameters = read.boolean("find_unused_parameters");
  options.static_graph = read.boolean("static_graph");
  options.gradient_as_bucket_view = read.boolean("gradient_as_bucket_view");
  if (read.given().has("bucket_cap_mb")) {
    options.bucket_cap = bucket_cap_of(read.number("bucket_cap_mb"));
  }
  return options;
}

}  // namespace lockstep
