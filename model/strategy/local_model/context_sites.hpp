#pragma once

#include <string_view>

namespace lockstep::context_sites {

// What the operations of context parallelism are called in findings.
inline constexpr std::string_view gather = "context parallel: all_gather of keys, then of values";
inline constexpr std::string_view scatter =
    "context parallel: reduce_scatter of the gradients of keys, then of values";
inline constexpr std::string_view to_heads =
    "context parallel: all_to_all, positions of all heads become heads of all positions";
inline constexpr std::string_view to_positions = "context parallel: all_to_all back to positions";
inline constexpr std::string_view ring =
    "context parallel: keys and values to the next rank of the ring";
inline constexpr std::string_view ring_back =
    "context parallel: keys, values and their gradients to the rank before in the ring";
inline constexpr std::string_view merge = "context parallel: a block's results are added";

inline constexpr std::string_view every_step[] = {gather, scatter,   to_heads, to_positions,
                                                  ring,   ring_back, merge};

}  // namespace lockstep::context_sites
