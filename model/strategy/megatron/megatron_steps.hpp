#pragma once

#include <string>
#include <vector>

#include "model/strategy/pipeline/pipeline_steps.hpp"

namespace lockstep {

/// Why Megatron-LM has no schedule of this shape; empty: it has one.
std::string why_no_megatron_schedule(const PipelineShape& shape);

/// The steps of one rank as Megatron-LM's schedules take them (megatron/core/pipeline_parallel/
/// schedules.py): 1F1B, or with several stages per rank the interleaved one, whose micro-batches
/// the ranks divide. Every message is waited for before the next computation
/// (overlap_p2p_comm=False).
std::vector<PipelineStep> megatron_steps(const PipelineShape& shape, int32_t rank);

}  // namespace lockstep
