#pragma once

#include "cli/render/json.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

Json prediction_json(const Prediction& prediction);
/// What the run costs; null: no price is known, or nothing is predicted.
Json cost_json(const Rehearsal& rehearsal);
Json partial_json(const PartialResults& partial);

}  // namespace lockstep::cli
