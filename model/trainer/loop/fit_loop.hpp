#pragma once

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// `trainer.fit` on one rank: setup, sanity check, epochs, validation, end, with the collectives
/// that Lightning 2.x calls around them, in its order (trainer.py, fit_loop.py,
/// training_epoch_loop.py).
Program fit(Training& training);

}  // namespace lockstep
