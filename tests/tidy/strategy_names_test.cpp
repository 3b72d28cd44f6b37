// Whoever needs to know something of a strategy asks its traits, not its name.
#include <catch2/catch.hpp>
#include <regex>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy::strategy_names_test {

namespace {

/// The strategies themselves, and the table of the names that Lightning gives them.
bool may_know_names(const Source& file) {
  return lies_in(file.path, "tests") || file.path.starts_with("model/strategy/") ||
         file.path == "model/trainer/framework/strategy_choice.cpp";
}

Offences compared_names(const Source& file) {
  // Not single_device, which is also a function of expectations.
  static const std::regex comparison(
      R"re((==|!=|starts_with\()\s*"(dp|ddp2?|fsdp|deepspeed|horovod|bagua)(_[a-z0-9_]*)?")re");
  Offences offences;
  for (auto found = std::sregex_iterator(file.text.begin(), file.text.end(), comparison);
       found != std::sregex_iterator(); ++found) {
    offences.push_back(place(file, static_cast<size_t>(found->position())) +
                       ": ask a trait of the strategy, not its name: " + found->str());
  }
  return offences;
}

}  // namespace

TEST_CASE("no name of a strategy is compared outside of the registry") {
  for (const Source& file : cpp_files()) {
    if (!may_know_names(file)) {
      expect_none(compared_names(file));
    }
  }
}

TEST_CASE("the rule of strategies sees a comparison and its line") {
  CHECK(compared_names({"a.cpp", "one\nif (name == \"ddp_spawn\") {\n"}) ==
        Offences{"a.cpp:2: ask a trait of the strategy, not its name: == \"ddp_spawn\""});
  CHECK(compared_names({"a.cpp", "name.starts_with(\"fsdp\")"}).size() == 1);
  CHECK(compared_names({"a.cpp", "launcher == \"horovodrun\""}).empty());
}

}  // namespace lockstep::tidy::strategy_names_test
