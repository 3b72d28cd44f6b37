#pragma once

#include <optional>
#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// What the machine of a run costs, and so the run.
struct Cost {
  std::string currency;  ///< "USD"
  double per_hour = 0;   ///< of everything that is paid for
  double amount = 0;     ///< of the price: of an hour of one unit
  int64_t units = 0;     ///< how many are paid for
  bool by_gpu = false;   ///< a unit is a GPU; else a node
  std::string source;    ///< whose price it is: "list price of p5.48xlarge, .."
  double total = 0;      ///< of the predicted time of the whole run
  std::optional<double> per_million_samples;  ///< at the steady throughput
  std::optional<double> per_billion_tokens;   ///< likewise, of models that take tokens
  std::optional<double> with_failures;        ///< at the forecast goodput
};

/// Nothing where there is no prediction, or no price is known: `why_no_cost` says which.
std::optional<Cost> cost_of(const Rehearsal& rehearsal);
/// Empty where there is a cost.
std::string why_no_cost(const Rehearsal& rehearsal);

/// "2 nodes x 55.04 USD/h, list price of p5.48xlarge (on demand, Linux, us-east-1; ..)".
std::string price_text(const Cost& cost);
/// "1,234 USD", "12.35 USD", "0.001234 USD".
std::string money_text(double amount, const std::string& currency);

}  // namespace lockstep::cli
