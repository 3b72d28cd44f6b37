#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/gloo/mailbox.hpp"
#include "model/core/values.hpp"

namespace lockstep::backend {

/// An all_reduce whose members have agreed on everything.
struct PartedSum {
  std::span<const int32_t> members;  ///< global ranks, in group order
  int64_t self = 0;                  ///< index in the group
  uint64_t slot = 0;                 ///< of this call; two slots are made of it
  DType dtype = DType::fp32;
  ReductionRule rule{};
};

/// Every member reduces one part of the contributions, in group order, and gives it to the others:
/// each sends and gets 2 (N - 1) / N of the bytes, and adds N parts once (Thakur, Rabenseifner,
/// Gropp 2005, reduce-scatter and all-gather, without the rings: every part has one origin).
/// `output` has the size of `input`, and may be its memory. Waits for the other members; throws
/// what Mailbox::wait throws.
void sum_in_parts(const PartedSum& sum, Mailbox& mailbox, const ValueView& input,
                  std::span<std::byte> output);

}  // namespace lockstep::backend
