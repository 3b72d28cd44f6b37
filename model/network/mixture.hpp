#pragma once

#include <cstdint>

#include "model/network/network.hpp"

namespace lockstep {

/// Fills work and saves of a mixture of experts by its arguments and its input.
void price_mixture(Layer& layer);

/// What ranks that divide the experts of a mixture compute between their exchanges. Operands, of a
/// forward and of a backward:
enum class MixturePart : uint8_t {
  /// reads input, router; writes rows for experts in order, and adds choices by expert (int64) |
  /// reads gradient of the router's output, input, router, gradient of the sent rows; writes
  /// gradients of input and router
  route,
  /// reads received rows, their numbers by source and own expert (int64), weights..; writes what
  /// experts give | reads gradient of that, rows, numbers, weights..; writes gradients of rows,
  /// weights..
  compute,
  /// reads input, router, what came back; writes output | reads output gradient, input, router,
  /// what came back; writes gradients of that, and of the router's output
  combine,
};

/// Of a layer that is a mixture.
const MixtureArguments& mixture_arguments(const Network& network, size_t layer);
bool has_mixtures(const Network& network);
/// The same network, whose mixtures have each weight of all experts in one parameter.
Network with_grouped_experts(Network network);
bool has_auxiliary_loss(const Network& network);
bool are_experts_divided(const Layer& layer);
bool are_experts_divided(const Network& network);

/// Parameters that one token passes through: of each mixture of experts only as many experts as a
/// token chooses.
int64_t active_parameter_elements(const Network& network);

}  // namespace lockstep
