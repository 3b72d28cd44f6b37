#pragma once

#include <rapidcheck.h>

#include "tests/property/long_training.hpp"

namespace lockstep::test {

/// Trainings of few steps, whose batches are many micro-batches that go through stages.
rc::Gen<LongTraining> long_pipelines();

}  // namespace lockstep::test
