#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "properties/diagnosis/decision.hpp"

namespace lockstep {

/// Where a rank is in its loops over batches at a row of its lane: "epoch 0, training batch 7",
/// "validation batch 1" (where no training batch was before), "epoch 0, after its training
/// batches". Batches and epochs count from 0. Empty outside of such loops.
std::string batch_position(const Sites& sites, const Decisions& decisions, int64_t row);

/// How many batches the loop has in which `left` was last before a row, where `right` has a
/// different number of them in the same pass.
std::optional<Decision> unequal_batches(const Sites& sites, const Decisions& left, int64_t row,
                                        const Decisions& right);

/// Whether `left` is in a batch at a row that `right` does not have: its number is not below the
/// number of batches that `right` has in that pass.
bool is_in_extra_batch(const Sites& sites, const Decisions& left, int64_t row,
                       const Decisions& right);

/// The batches that a decision about a loop over batches concerns: "training"; else empty.
std::string batches_of(const Sites& sites, const std::optional<Decision>& decision);

}  // namespace lockstep
