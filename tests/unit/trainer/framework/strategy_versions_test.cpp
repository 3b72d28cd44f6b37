// What versions of Lightning and torch do otherwise with strategies of one name.
#include "model/trainer/framework/strategy_versions.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_choice.hpp"

using namespace lockstep;

namespace strategy_versions_test {

namespace {

Time limit_of(const char* class_name, Version lightning, std::optional<Version> torch = {}) {
  return default_time_limit({.class_name = class_name, .lightning = lightning, .torch = torch});
}

}  // namespace

TEST_CASE("a process group has Lightning's limit where its class hands it over, else torch's") {
  const Version newest{2, 6, 0};
  // Constructors with `timeout: Optional[timedelta] = default_pg_timeout`, which is 30 min.
  CHECK(limit_of("DDPStrategy", newest) == 30_min);
  CHECK(limit_of("FSDPStrategy", {2, 1, 0}, Version{2, 2, 0}) == 30_min);
  CHECK(limit_of("ModelParallelStrategy", {2, 3, 0}) == 30_min);
  // deepspeed/constants.py: 30 min, also where Lightning says nothing.
  CHECK(limit_of("DeepSpeedStrategy", {2, 0, 0}, Version{2, 2, 0}) == 30_min);
  // FSDPStrategy of 2.0 has no `timeout`, and init_process_group takes torch's own.
  CHECK(limit_of("FSDPStrategy", {2, 0, 0}, Version{2, 2, 0}) == 10_min);
  CHECK(limit_of("FSDPStrategy", {2, 0, 0}, Version{2, 1, 0}) == 30_min);
  CHECK(limit_of("FSDPStrategy", {2, 0, 0}) == 30_min);
  CHECK(limit_of("BaguaStrategy", {1, 9, 0}) == 30_min);
  // timeout=None is torch's default as well.
  CHECK(default_time_limit({.class_name = "DDPStrategy", .lightning = newest, .is_none = true}) ==
        10_min);
}

TEST_CASE("without a Trainer NCCL's limit is 10 min since torch 2.2 and was 30, as Gloo's is") {
  CHECK(default_time_limit({}) == 10_min);
  CHECK(default_time_limit({.torch = Version{2, 2, 0}}) == 10_min);
  CHECK(default_time_limit({.torch = Version{2, 1, 2}}) == 30_min);
  CHECK(default_time_limit({.gloo = true}) == 30_min);
}

// plugins/training_type/deepspeed.py of 1.4.9 and 1.5.10.
TEST_CASE("arguments left a class with a version") {
  for (const char* name : {"cpu_offload", "cpu_offload_params", "cpu_offload_use_pin_memory",
                           "save_full_weights", "partition_module"}) {
    INFO(name);
    const ArgumentOfVersions* versions = versions_of_argument("DeepSpeedStrategy", name);
    REQUIRE(versions != nullptr);
    CHECK(versions->since <= Version{1, 4, 0});
    CHECK(versions->until == Version{1, 5, 0});
  }
}

TEST_CASE("arguments came to a class with a version") {
  const auto since = [](const char* class_name, const char* argument) {
    const ArgumentOfVersions* row = versions_of_argument(class_name, argument);
    return row == nullptr ? Version{} : row->since;
  };
  CHECK(since("FSDPStrategy", "state_dict_type") == Version{2, 1, 0});
  CHECK(since("DeepSpeedStrategy", "exclude_frozen_parameters") == Version{2, 5, 0});
  CHECK(since("DDPStrategy", "timeout") == Version{1, 7, 0});
  CHECK(since("DDPStrategy", "bucket_cap_mb") == Version{});
}

TEST_CASE(
    "FSDPStrategy before 2.6 gathers fp32 under mixed precision, and 2.0 leaves more to torch") {
  const auto given = [](const char* lightning, const char* argument) {
    const auto arguments = arguments_of_version("fsdp", *version_of(lightning));
    return std::ranges::count(arguments, argument) == 1;
  };
  CHECK(given("2.0", "wide_mixed_precision=true"));
  CHECK(given("2.5.6", "wide_mixed_precision=true"));
  CHECK_FALSE(given("2.6", "wide_mixed_precision=true"));
  CHECK(given("2.0.9", "use_orig_params=false"));
  CHECK_FALSE(given("2.1", "use_orig_params=false"));
  CHECK(clips_shards_by_norm("fsdp", {2, 0, 9}));
  CHECK_FALSE(clips_shards_by_norm("fsdp", {2, 1, 0}));
}

TEST_CASE("what a version hands over comes with the name, and the name's own arguments after it") {
  StrategySituation situation;
  situation.lightning = {2, 0, 0};
  situation.devices = 2;
  const StrategyChoice choice =
      choose_strategy("fsdp_cpu_offload", situation, standard_strategies());
  const auto has = [&](const char* name) {
    return std::ranges::any_of(choice.arguments,
                               [name](const auto& given) { return given.first == name; });
  };
  CHECK(has("cpu_offload"));
  CHECK(has("default_process_group"));
  CHECK(has("wide_mixed_precision"));
}

}  // namespace strategy_versions_test
