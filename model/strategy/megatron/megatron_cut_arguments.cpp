// What the mesh of a MegatronStrategy leaves each rank of the network, and what does not divide it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/core/nearest_sizes.hpp"
#include "model/network/mixture.hpp"
#include "model/network/tensor_parallel/context_cut.hpp"
#include "model/network/tensor_parallel/expert_cut.hpp"
#include "model/strategy/megatron/megatron_arguments.hpp"
#include "model/strategy/megatron/megatron_keys.hpp"

namespace lockstep {

using namespace megatron_keys;

namespace {

/// The same cut, or an error of an argument that says why there is none.
CutNetwork possible(CutNetwork cut, const char* argument) {
  if (!cut.why_not.empty()) {
    const std::string why =
        cut.where.empty() ? cut.why_not : fmt::format("{}: {}", cut.where, cut.why_not);
    if (cut.is_unmodelled) {
      throw UnmodelledArgument(why, argument, cut.remedy);
    }
    throw RefusedArgument(why, argument, cut.remedy);
  }
  return cut;
}

/// What the number of positions has to be a multiple of: tensor ranks divide what a context rank
/// has of them, which are two equal stretches.
int64_t multiple_of_positions(const MegatronMesh& mesh, bool sequence_parallel) {
  const int64_t tensor = sequence_parallel ? mesh.mesh.tensor_ranks : 1;
  return mesh.context.ranks > 1 ? mesh.context.ranks * std::lcm(tensor, int64_t{2}) : tensor;
}

std::string remedy_of_positions(int64_t positions, const MegatronMesh& mesh,
                                bool sequence_parallel) {
  const int64_t step = multiple_of_positions(mesh, sequence_parallel);
  return fmt::format("choose a sequence length that {} divides, such as {}", step,
                     nearest_multiples(positions, step));
}

CutNetwork cut_among_tensor_ranks(const Network& whole, bool sequence_parallel,
                                  const MegatronMesh& mesh) {
  const int32_t ranks = mesh.mesh.tensor_ranks;
  CutNetwork cut = cut_as_megatron(whole, ranks, sequence_parallel);
  const int64_t positions = whole.input.empty() ? 0 : whole.input.front();
  if (cut.why_not.empty() || !sequence_parallel || positions % ranks == 0) {
    return possible(std::move(cut), tensor_size);
  }
  if (!cut_as_megatron(whole, ranks, false).why_not.empty()) {
    return possible(std::move(cut), tensor_size);  // the length is not all that is wrong
  }
  // megatron/core/tensor_parallel/mappings.py
  throw RefusedArgument(
      fmt::format("AssertionError: First dimension of the tensor should be divisible by tensor "
                  "parallel size ({} positions, {} ranks)",
                  positions, ranks),
      by_positions,
      fmt::format("{}, or leave {} out", remedy_of_positions(positions, mesh, true), by_positions));
}

CutNetwork cut_among_context_ranks(const Network& network, const Network& whole,
                                   bool sequence_parallel, const MegatronMesh& mesh) {
  CutNetwork cut = cut_by_positions(network, mesh.context.ranks, mesh.context.exchange);
  const int64_t positions = whole.input.empty() ? 0 : whole.input.front();
  const bool fits = positions % multiple_of_positions(mesh, sequence_parallel) == 0;
  if (!cut.why_not.empty() && positions > 0 && !fits) {
    cut.remedy = remedy_of_positions(positions, mesh, sequence_parallel);
  }
  return possible(std::move(cut), context_size);
}

/// Experts are divided among ranks of a stage, so their number has to divide both.
CutNetwork cut_among_expert_ranks(const Network& network, const MegatronMesh& mesh,
                                  int32_t world_size) {
  CutNetwork cut = cut_by_experts(network, mesh.experts);
  const auto indivisible = std::ranges::find_if(network.layers, [&](const Layer& layer) {
    const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments);
    return mixture != nullptr && mixture->num_experts % mesh.experts.ranks != 0;
  });
  if (!cut.why_not.empty() && indivisible != network.layers.end()) {
    const int64_t experts = std::get<MixtureArguments>(indivisible->arguments).num_experts;
    const int64_t ranks = world_size / (mesh.experts.tensor_ranks * mesh.shape.ranks);
    cut.remedy = fmt::format(
        "write {}: {}, which divides num_experts ({}) and the ranks that can divide "
        "them ({})",
        expert_size, divisors_of(std::gcd(experts, ranks), mesh.experts.ranks), experts, ranks);
  }
  return possible(std::move(cut), expert_size);
}

}  // namespace

std::optional<CutNetwork> megatron_cut_of(const Network& whole, const StrategyArguments& arguments,
                                          int32_t world_size) {
  const MegatronMesh mesh = megatron_mesh_of(arguments, world_size);
  const bool sequence_parallel = arguments.boolean(by_positions, false);
  std::optional<CutNetwork> cut;
  const auto network = [&]() -> const Network& { return cut ? cut->network : whole; };
  if (mesh.mesh.tensor_ranks > 1) {
    cut = cut_among_tensor_ranks(whole, sequence_parallel, mesh);
  }
  if (mesh.context.ranks > 1) {
    cut = cut_among_context_ranks(network(), whole, sequence_parallel, mesh);
  }
  if (mesh.experts.ranks > 1 || (mesh.experts.tensor_ranks > 1 && has_mixtures(whole))) {
    cut = cut_among_expert_ranks(network(), mesh, world_size);
  }
  return cut;
}

}  // namespace lockstep
