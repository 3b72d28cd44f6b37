#pragma once

#include "explain/explain_keys.hpp"
#include "io/scenario/classes/catalogue.hpp"

namespace lockstep::cli {

/// What a layer or loss computes, an example, and the figures of the layer in that example.
/// `role` is layer or loss; `page` has name and keys already.
void describe_layer(ObjectRole role, KeyPage& page);

}  // namespace lockstep::cli
