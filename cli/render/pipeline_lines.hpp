#pragma once

#include <string>

#include "cli/render/json.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// What stands beside a predicted bubble: what it would be, were all stages alike.
std::string bubble_text(const Prediction& prediction);

/// For `-v`: the stages of a pipeline, and which micro-batches its ranks wait for longest. Empty
/// without a pipeline.
std::string render_pipeline(const Rehearsal& rehearsal);
/// The same of all ranks; null: there is no pipeline.
Json pipeline_json(const Rehearsal& rehearsal);

/// Of a rank that drives several devices: how busy each is, and its memory. Empty where ranks have
/// one.
std::string render_devices(const Rehearsal& rehearsal);
Json devices_json(const Rehearsal& rehearsal);

/// Which experts the tokens of a training chose, by layer; empty where none has values.
Json experts_json(const OneRun& run);

}  // namespace lockstep::cli
