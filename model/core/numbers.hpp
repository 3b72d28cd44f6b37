#pragma once

#include <vector>

#include "model/core/values.hpp"

namespace lockstep {

/// All of `values` at once as T (float, double or int64_t), element by element what
/// `Values::number` gives, for int64_t what `Values::integer` gives. For loops over many elements:
/// the type is looked at once.
template <class T>
std::vector<T> numbers_of(const Values& values);

}  // namespace lockstep
