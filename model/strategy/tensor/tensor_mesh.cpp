#include "model/strategy/tensor/tensor_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

namespace {

Rank::NewGroup make_group(Rank& rank, int32_t first, int32_t count, int32_t step) {
  std::vector<int64_t> members;
  for (int32_t i = 0; i < count; ++i) {
    members.push_back(first + i * step);
  }
  return rank.new_group(world_group, members,
                        {communication_stream, {}, site_id(tensor_sites::make_groups)});
}

/// Of a row-parallel layer, which every rank has whole.
bool is_shared_bias(const Network& network, const ParameterPlace& place) {
  const auto* bias = std::get_if<BiasArguments>(&network.layers[place.layer].arguments);
  return bias != nullptr && bias->shares > 1;
}

}  // namespace

Task<TensorMesh> make_tensor_mesh(Rank& rank, int32_t tensor_ranks) {
  TensorMesh mesh;
  mesh.data_ranks = rank.world_size() / tensor_ranks;
  mesh.data_index = rank.id() / tensor_ranks;
  mesh.tensor.ranks = tensor_ranks;
  mesh.tensor.index = rank.id() % tensor_ranks;
  mesh.tensor.on = stream(queue::first_group);
  mesh.tensor.group = world_group;
  mesh.data = world_group;
  mesh.first_tensor_rank = mesh.data_index * tensor_ranks;
  for (int32_t index = 0; index < tensor_ranks; ++index) {
    const Rank::NewGroup made = make_group(rank, index, mesh.data_ranks, tensor_ranks);
    co_await rank.settle(made.ready);
    mesh.data = index == mesh.tensor.index ? made.group : mesh.data;
  }
  for (int32_t replica = 0; mesh.data_ranks > 1 && replica < mesh.data_ranks; ++replica) {
    const Rank::NewGroup made = make_group(rank, replica * tensor_ranks, tensor_ranks, 1);
    co_await rank.settle(made.ready);
    mesh.tensor.group = replica == mesh.data_index ? made.group : mesh.tensor.group;
  }
  co_return mesh;
}

bool has_partial_gradient(const Replica& replica, size_t parameter) {
  const Replica::Parameter& given = replica.parameters()[parameter];
  return replica.network().parameter(given.place).gradient_is_partial &&
         given.tensor.gradient.buffer != no_buffer;
}

void sum_partial_gradients(Rank& rank, const Replica& replica, const TensorRanks& ranks,
                           const std::vector<size_t>& parameters, Ticket after) {
  const SiteId site = site_id(tensor_sites::reduce_partial);
  Ticket last{};
  for (const size_t index : parameters) {
    const Replica::Parameter& parameter = replica.parameters()[index];
    if (!has_partial_gradient(replica, index)) {
      continue;
    }
    const Ticket ready = rank.event({replica.compute(), {after}, site});
    last = rank.all_reduce(ranks.group, parameter.tensor.gradient, Reduction::sum,
                           {ranks.on, {ready}, site});
  }
  if (last) {
    rank.event({replica.compute(), {last}, site});
  }
}

bool counts_in_norm(const Replica& replica, const TensorRanks& ranks, size_t parameter) {
  const ParameterTensor& tensor =
      replica.network().parameter(replica.parameters()[parameter].place);
  return tensor.cut.has_value() || ranks.index == 0;
}

bool is_in_plan(const Replica& replica, size_t parameter) {
  const ParameterPlace place = replica.parameters()[parameter].place;
  const ParameterTensor& tensor = replica.network().parameter(place);
  return tensor.cut || tensor.gradient_is_partial || is_shared_bias(replica.network(), place);
}

void check_distributed(const OptimizerPlan& optimizer, const Replica& replica, size_t parameter,
                       SiteId site) {
  const Shape& shape = replica.network().parameter(replica.parameters()[parameter].place).shape;
  const std::string_view error = rule_of(optimizer.kind).error_of_distributed(shape.size());
  if (!error.empty()) {
    throw ProgramException(
        site, fmt::format("{} ({} is given DTensors)", error, rule_of(optimizer.kind).name()));
  }
}

PlanCoverage plan_coverage(const Replica& replica, const std::vector<size_t>& parameters) {
  const auto inside = std::ranges::count_if(
      parameters, [&](size_t parameter) { return is_in_plan(replica, parameter); });
  if (inside == 0) {
    return PlanCoverage::none;
  }
  return inside == std::ssize(parameters) ? PlanCoverage::all : PlanCoverage::some;
}

void sum_across_plan(SharedNorm& norm, const Replica& replica, const TensorRanks& ranks,
                     const std::vector<size_t>& given, const std::vector<Slice>& gradients,
                     int64_t elements, SiteId site) {
  switch (plan_coverage(replica, given)) {
    case PlanCoverage::all: norm.sums.push_back({ranks.group, elements}); return;
    case PlanCoverage::none: norm.counted = &gradients; return;
    case PlanCoverage::some:
      throw ProgramException(
          site,
          "RuntimeError: All operands in aten.stack.default must have the same "
          "mesh: parameters outside of parallelize_plan cannot be clipped "
          "together with those in it; put every trained module into the plan, or "
          "leave gradient_clip_val out");
  }
}

Program distribute_parameters(Rank& rank, const Replica& replica, const TensorMesh& mesh) {
  const CommunicationOptions options{mesh.tensor.on, {}, site_id(tensor_sites::distribute)};
  for (const Replica::Parameter& parameter : replica.parameters()) {
    const ParameterTensor& tensor = replica.network().parameter(parameter.place);
    if (tensor.cut) {
      const Slice own =
          rank.allocate(Purpose::communication, replica.plan().parameter_dtype, tensor.elements());
      const bool is_first = mesh.tensor.index == 0;
      const Slice all = is_first ? rank.allocate(Purpose::communication, own.dtype,
                                                 own.elements * mesh.tensor.ranks)
                                 : Slice{};
      const Ticket done =
          rank.scatter(mesh.tensor.group, all, own, mesh.first_tensor_rank, options);
      co_await rank.settle(done);
      if (is_first) {
        rank.release(all);
      }
      rank.release(own);
    } else if (is_shared_bias(replica.network(), parameter.place)) {
      const Slice whole =
          rank.allocate(Purpose::communication, replica.plan().parameter_dtype, tensor.elements());
      const Ticket done = rank.broadcast(mesh.tensor.group, whole, mesh.first_tensor_rank, options);
      co_await rank.settle(done);
      rank.release(whole);
    }
  }
}

}  // namespace lockstep
