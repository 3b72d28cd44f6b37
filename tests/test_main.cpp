#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <iostream>

namespace {

/// Every failure prints the one line that repeats it.
class RepeatLine final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.failed > 0) {
      std::cout << "to repeat: build/bin/" << m_config->name() << " \"" << stats.testInfo.name
                << "\"" << std::endl;
    }
  }
};

CATCH_REGISTER_LISTENER(RepeatLine)

}  // namespace
