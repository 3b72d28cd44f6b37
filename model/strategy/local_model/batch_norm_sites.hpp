#pragma once

#include <string_view>

namespace lockstep::batch_norm_sites {

// What a batch norm that shares its statistics sends is called in findings.
inline constexpr std::string_view gather_statistics =
    "SyncBatchNorm: all_gather of the batch's statistics in forward";
inline constexpr std::string_view reduce_sums =
    "SyncBatchNorm: all_reduce of sums of gradients in backward";

inline constexpr std::string_view all[] = {gather_statistics, reduce_sums};

}  // namespace lockstep::batch_norm_sites
