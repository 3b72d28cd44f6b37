#pragma once

#include <optional>
#include <string>

#include "model/core/ids.hpp"
#include "model/core/site.hpp"
#include "model/program/rank.hpp"
#include "model/strategy/pipeline/schedule.hpp"

namespace lockstep {

// What a rank of a pipeline computes next, as an event in its stream: the site says which work, the
// tag in which stage and for which micro-batch. Readers of a journal have nothing else to know it
// by.
void mark_action(Rank& rank, StreamId on, const PipelineAction& action);
/// The action that an event begins; nothing: the event is no such mark.
std::optional<PipelineAction> marked_action(SiteId site, int32_t tag);

/// "forward", "backward", "input gradient", "weight gradient".
std::string_view name_of(PipelineWork work);
/// "stage 1 forward of micro-batch 3"
std::string text_of(const PipelineAction& action);

}  // namespace lockstep
