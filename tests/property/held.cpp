#include "tests/property/held.hpp"

#include <fmt/core.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

namespace lockstep::test {

bool holds(const char* test, int cases, const std::function<void()>& body, const char* program) {
  // RapidCheck reads RC_PARAMS once for the whole program, so each test's own numbers are given to
  // it here.
  rc::detail::TestParams parameters = rc::detail::configuration().testParams;
  if (std::getenv("RC_PARAMS") == nullptr) {
    parameters.seed = 1;
    parameters.maxSuccess = cases;
  }
  rc::detail::TestMetadata metadata;
  metadata.id = test;
  metadata.description = test;
  std::cerr << "\n- " << test << "\n";
  const rc::detail::TestResult result = rc::detail::checkTestable(body, metadata, parameters);
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << std::endl;
  const bool held = result.is<rc::detail::SuccessResult>();
  if (!held) {
    fmt::print("to repeat: RC_PARAMS=\"seed={} max_success={}\" build/bin/{} \"{}\"\n",
               parameters.seed, parameters.maxSuccess, program, test);
  }
  return held;
}

}  // namespace lockstep::test
