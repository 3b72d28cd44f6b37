#pragma once

#include "cli/render/json.hpp"

namespace lockstep::cli {

Json prediction_json(const Prediction& prediction);
Json partial_json(const PartialResults& partial);

}  // namespace lockstep::cli
