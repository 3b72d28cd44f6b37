#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/op.hpp"
#include "properties/diagnosis/divergence.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// What becomes of one member of a collective over Gloo.
enum class GlooOutcome : uint8_t {
  completes,   ///< perhaps with less than it asked for: the rest keeps what it held
  waits,       ///< until the time limit of its group
  aborts,      ///< its process ends by SIGABRT: it gets more bytes than it asked for
  loses_peer,  ///< it raises within milliseconds: the process of a peer ended
};

/// One member's arguments.
struct GlooCall {
  OpKind kind = OpKind::all_reduce;
  int64_t bytes = 0;         ///< as Op::bytes
  int64_t element_size = 1;  ///< bytes
  int64_t root = 0;          ///< index in the group
};

/// By member, as torch 2.11 does over Gloo on CPUs: what members agree in matches, and the messages
/// of its algorithms (a ring with segments, a binomial tree, direct messages) have the sizes of
/// their senders. all_to_all is taken in equal parts.
std::vector<GlooOutcome> gloo_outcomes(std::span<const GlooCall> calls);

/// A sentence for users about a call whose sizes differ between ranks, when its processes end or go
/// on at once; empty where they wait for the time limit.
std::string gloo_outcome_text(const Divergence& divergence);

/// How the sentences begin that say so, in the `follows` of a finding.
inline constexpr std::string_view gloo_ends_process = "Gloo ends the process";
inline constexpr std::string_view gloo_goes_on = "Gloo notices nothing";
/// Whether torch over Gloo would not wait there, as the worlds of this program do.
bool torch_does_not_wait(const Finding& finding);

}  // namespace lockstep
