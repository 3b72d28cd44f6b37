#pragma once

#include <cstdint>

namespace lockstep {

/// The classes whose updates are modelled; `rule_of` says all else about one.
enum class OptimizerKind : uint8_t {
  sgd,
  adam,
  adamw,
  qadam,
  adagrad,
  adadelta,
  adamax,
  nadam,
  radam,
  rmsprop,
  rprop,
  asgd,
  lion,
  lamb,
  adafactor,
};

/// An optimizer with its arguments; which of them hold depends on the kind. Names and meanings are
/// those of torch.optim where nothing else is said.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  double lr = 0.1;
  double momentum = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t warmup_steps = 0;  ///< qadam: steps before this one update the moments
  bool set_to_none = true;   ///< what its zero_grad does where nothing else is said
  /// DeepSpeedCPUAdam: it updates in host memory alone, and counts steps in a plain number, where
  /// torch's Adam has a tensor.
  bool is_on_host = false;
  bool is_fused = false;  ///< FusedAdam: one kernel of all tensors, which holds nothing beside them
  bool corrects_bias = true;  ///< bias_correction of DeepSpeed's Adam

  double dampening = 0;
  bool nesterov = false;
  bool maximize = false;
  bool amsgrad = false;
  bool decoupled_weight_decay = false;
  double forgetting = 0.9;  ///< rho of Adadelta, alpha of RMSprop
  bool centered = false;
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double momentum_decay = 4e-3;
  double eta_minus = 0.5;  ///< etas
  double eta_plus = 1.2;
  double least_step = 1e-6;  ///< step_sizes
  double largest_step = 50;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double beta2_decay = -0.8;
  double least_variance = -1;  ///< the first of Adafactor's eps; below 0: that of the type
  double least_scale = 1e-3;   ///< the second
  double d = 1;
  double clamp_value = 10;  ///< of Lamb: the most that it takes a parameter's norm for
  bool debias = false;
};

}  // namespace lockstep
