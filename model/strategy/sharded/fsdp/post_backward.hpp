#pragma once

#include "model/core/ids.hpp"

namespace lockstep {

namespace queue {
/// Behind the reductions of FSDP1 and FairScale's FSDP: `_post_backward_stream`.
inline constexpr uint8_t post_backward = 6;
static_assert(post_backward > write && post_backward < first_named, "a queue of its own");
}  // namespace queue

inline constexpr StreamId post_backward_stream = stream(queue::post_backward);

}  // namespace lockstep
