#include "sim/cost/nccl_settings.hpp"

#include <catch2/catch.hpp>

#include "sim/cost/nccl_algorithm.hpp"

using namespace lockstep::sim;

namespace nccl_settings_test {

namespace {

NcclSettingsResult read(std::vector<NcclVariable> variables) {
  return read_nccl_settings(variables);
}

bool allows(const NcclSettings& settings, NcclFunction function, std::string_view algorithm) {
  const auto all = nccl_algorithms();
  for (size_t place = 0; place < all.size(); ++place) {
    if (all[place].name == algorithm) {
      return settings.allowed[static_cast<size_t>(function)].algorithms[place];
    }
  }
  return false;
}

constexpr auto all_reduce = NcclFunction::all_reduce;
constexpr auto all_gather = NcclFunction::all_gather;

}  // namespace

TEST_CASE("NCCL_ALGO lists what stays, or with ^ what goes, in any case") {
  const NcclSettings listed = read({{"NCCL_ALGO", "ring,TREE"}}).settings;
  CHECK(allows(listed, all_reduce, "Ring"));
  CHECK(allows(listed, all_reduce, "Tree"));
  CHECK_FALSE(allows(listed, all_reduce, "NVLS"));
  const NcclSettings excluded = read({{"NCCL_ALGO", "^NVLS,NVLSTree"}}).settings;
  CHECK(allows(excluded, all_reduce, "Ring"));
  CHECK_FALSE(allows(excluded, all_reduce, "NVLSTree"));
  const NcclSettings family = read({{"NCCL_ALGO", "CollNet"}}).settings;
  CHECK(allows(family, all_reduce, "CollnetDirect"));
  CHECK(allows(family, all_reduce, "CollnetChain"));
}

TEST_CASE("NCCL_ALGO may name functions") {
  const NcclSettings settings = read({{"NCCL_ALGO", "allreduce:tree;allgather:ring"}}).settings;
  CHECK_FALSE(allows(settings, all_reduce, "Ring"));
  CHECK(allows(settings, all_gather, "Ring"));
  CHECK(allows(settings, NcclFunction::broadcast, "Ring"));
}

TEST_CASE("NCCL_PROTO with LL128 asks for it where it is off") {
  const NcclAllowed named = read({{"NCCL_PROTO", "LL128,Simple"}}).settings.allowed[4];
  CHECK(named.names_ll128);
  CHECK_FALSE(named.protocols[0]);
  CHECK_FALSE(read({{"NCCL_PROTO", "^LL"}}).settings.allowed[4].names_ll128);
}

TEST_CASE("switches and numbers of NCCL") {
  const NcclSettings settings = read({{"NCCL_P2P_DISABLE", "1"},
                                      {"NCCL_NVLS_ENABLE", "0"},
                                      {"NCCL_COLLNET_ENABLE", "1"},
                                      {"NCCL_NET", "Socket"},
                                      {"NCCL_MAX_CTAS", "8"},
                                      {"NCCL_NET_OVERHEAD", "1500"}})
                                    .settings;
  CHECK_FALSE(settings.has_peer_to_peer);
  CHECK_FALSE(settings.has_nvls);
  CHECK(settings.has_collnet);
  CHECK_FALSE(settings.has_infiniband);
  CHECK(settings.channels_max == 8);
  CHECK(settings.network_overhead_us.value() == Approx(1.5));
}

TEST_CASE("sockets of a connection") {
  const NcclSettingsResult read =
      read_nccl_settings({{"NCCL_SOCKET_NTHREADS", "4"}, {"NCCL_NSOCKS_PERTHREAD", "2"}});
  CHECK(read.errors.empty());
  CHECK(read.settings.socket_threads == 4);
  CHECK(read.settings.sockets_per_thread == 2);
  CHECK(read_nccl_settings({{"NCCL_SOCKET_NTHREADS", "17"}}).errors.size() == 1);
  CHECK(read_nccl_settings({{"NCCL_NSOCKS_PERTHREAD", "0"}}).errors.size() == 1);
}

TEST_CASE("values that NCCL would not understand are errors, and what is not modelled is named") {
  for (const NcclVariable& bad : std::vector<NcclVariable>{{"NCCL_ALGO", "Rong"},
                                                           {"NCCL_ALGO", ""},
                                                           {"NCCL_ALGO", "gathers:ring"},
                                                           {"NCCL_PROTO", "LL256"},
                                                           {"NCCL_P2P_DISABLE", "yes"},
                                                           {"NCCL_MAX_CTAS", "0"},
                                                           {"NCCL_MAX_NCHANNELS", "65"}}) {
    INFO(bad.name << "=" << bad.value);
    CHECK(read({bad}).errors.size() == 1);
  }
  const NcclSettingsResult other = read({{"NCCL_DEBUG", "INFO"}, {"PATH", "x"}});
  CHECK(other.errors.empty());
  CHECK(other.ignored == std::vector<std::string>{"NCCL_DEBUG"});
}

}  // namespace nccl_settings_test
