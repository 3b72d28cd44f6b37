#include "rehearsal/text/rates_text.hpp"

#include <fmt/format.h>

#include <vector>

#include "properties/logged/value_text.hpp"

namespace lockstep::cli {

std::string rates_text(const RankLog& log) {
  std::vector<std::string> rates;
  for (const std::vector<double>& of_optimizer : log.learning_rates) {
    rates.push_back(of_optimizer.empty() ? "none" : value_text(of_optimizer.back()));
  }
  return rates.empty() ? "none" : fmt::format("{}", fmt::join(rates, " and "));
}

}  // namespace lockstep::cli
