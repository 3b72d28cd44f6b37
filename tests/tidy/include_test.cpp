// Who may include what: model <- sim, backend, properties, io <- rehearsal <- explain <- cli.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "tests/tidy/includes.hpp"
#include "tests/tidy/source.hpp"

namespace lockstep::tidy::include_test {

namespace {

bool begins_with_any(std::string_view target, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return target.starts_with(start); });
}

/// A folder, and those beside it whose headers its files may include.
struct Sight {
  std::string_view folder;
  std::string_view others;  ///< between blanks
};

constexpr auto sights = std::to_array<Sight>({
    {"model", ""},
    {"sim", " model "},
    {"backend", " model "},
    {"properties", " model "},
    {"io", " model "},
    {"rehearsal", " model sim backend properties io "},
    // The program of one rank: over the real worlds, but no part of their library.
    {"backend/rank_program", " model backend properties io rehearsal "},
    {"explain", " model properties io rehearsal "},
    {"cli", " model sim backend properties io rehearsal explain "},
});

// Below model/. The user's statements and the trainer's loops call each other.
constexpr auto model_sights = std::to_array<Sight>({
    {"model/core", ""},
    {"model/expression", " core "},
    {"model/program", " core "},
    {"model/scenario", " core expression cluster "},
    {"model/network", " core expression scenario "},
    {"model/cluster", " core network "},
    {"model/metric", " core expression program scenario "},
    {"model/strategy", " core program network "},
    {"model/user_program", " core expression program scenario network metric strategy trainer "},
    {"model/trainer",
     " core expression program scenario network cluster metric strategy user_program "},
});

/// What the last entry says whose folder holds this file; null: no entry, so it sees everything.
template <size_t count>
const Sight* sight_of(const std::array<Sight, count>& all, std::string_view path) {
  const Sight* found = nullptr;
  for (const Sight& sight : all) {
    const bool is_nearer = found == nullptr || sight.folder.size() > found->folder.size();
    found = lies_in(path, sight.folder) && is_nearer ? &sight : found;
  }
  return found;
}

bool may_see(const Sight* from, const Sight* to, std::string_view other) {
  return from == nullptr || to == nullptr || from == to ||
         from->others.find(" " + std::string(other) + " ") != std::string_view::npos;
}

std::string_view last_name(std::string_view folder) { return folder.substr(folder.rfind('/') + 1); }

Offences wrong_directions(const Source& file) {
  Offences offences;
  const Sight* from = sight_of(sights, file.path);
  const Sight* from_model = sight_of(model_sights, file.path);
  for (const Include& include : includes_of(file.text)) {
    const Sight* to = sight_of(sights, include.target);
    const Sight* to_model = sight_of(model_sights, include.target);
    const auto add = [&](const Sight& one, std::string_view other) {
      offences.push_back(place(file, include.position) + ": " + std::string(one.folder) +
                         "/ must not include " + std::string(other) + "/ (" + include.target + ")");
    };
    if (from != nullptr && include.target.starts_with("tests/")) {
      add(*from, "tests");
    } else if (to != nullptr && !may_see(from, to, to->folder)) {
      add(*from, to->folder);
    } else if (to_model != nullptr && !may_see(from_model, to_model, last_name(to_model->folder))) {
      add(*from_model, to_model->folder);
    }
  }
  return offences;
}

bool lies_in_any(std::string_view path, std::initializer_list<std::string_view> folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](std::string_view folder) { return lies_in(path, folder); });
}

Offences misplaced_libraries(const Source& file) {
  Offences offences;
  for (const Include& include : includes_of(file.text)) {
    const std::string& target = include.target;
    const bool is_machine = begins_with_any(
        target, {"gloo/", "torch/", "ATen/", "c10/", "cuda", "nccl", "cublas", "cudnn", "nvrtc"});
    const bool is_format = begins_with_any(target, {"yaml-cpp/", "nlohmann/"});
    const bool is_library = !include.is_quoted && target.find('/') != std::string::npos &&
                            !begins_with_any(target, {"fmt/", "boost/"});
    std::string where;
    if (is_machine && !lies_in(file.path, "backend")) {
      where = "only backend/ includes ";
    } else if (is_format &&
               !lies_in_any(file.path, {"io", "rehearsal/launch", "explain", "cli", "tests"})) {
      where = "only io/, rehearsal/launch/, explain/ and cli/ (and tests) include ";
    } else if (is_library && lies_in(file.path, "model")) {
      where = "model/ uses the standard library, fmt and Boost alone, not ";
    }
    if (!where.empty()) {
      offences.push_back(place(file, include.position) + ": " + where + target);
    }
  }
  return offences;
}

// "dtype.hpp" would find a neighbour; "model/core/dtype.hpp" says where it is.
Offences unrooted_includes(const std::vector<Source>& files) {
  std::set<std::string> paths;
  for (const Source& file : files) {
    paths.insert(file.path);
  }
  Offences offences;
  for (const Source& file : files) {
    for (const Include& include : includes_of(file.text)) {
      if (include.is_quoted && !paths.contains(include.target)) {
        offences.push_back(place(file, include.position) + ": no file " + include.target +
                           " below the root");
      }
    }
  }
  return offences;
}

// Headers of model, sim and properties are installed: their readers may live elsewhere.
Offences dead_headers(const std::vector<Source>& files) {
  std::set<std::string> included;
  for (const Source& file : files) {
    for (const Include& include : includes_of(file.text)) {
      included.insert(include.target);
    }
  }
  Offences offences;
  for (const Source& file : files) {
    const bool is_public = lies_in(file.path, "model") || lies_in(file.path, "sim") ||
                           lies_in(file.path, "properties");
    if (file.path.ends_with(".hpp") && !is_public && !included.contains(file.path)) {
      offences.push_back(file.path + ":1: nothing includes this header");
    }
  }
  return offences;
}

// The places from which the build takes its sources; bench/ is not searched in depth.
bool is_built(std::string_view path) {
  if (lies_in_any(path, {"model", "sim", "properties", "io", "backend", "rehearsal", "explain",
                         "cli", "tests/unit", "tests/cli_test", "tests/tidy", "tests/conformance",
                         "tests/property", "tests/libtorch", "tests/fleet", "tests/faults",
                         "tests/device", "tests/gpu"})) {
    return true;
  }
  const std::string_view folder = path.substr(0, path.rfind('/'));
  return (folder == "bench" && (path.ends_with("_bench.cpp") || path.ends_with("_fit.cpp"))) ||
         path == "tests/test_main.cpp" || folder == "tests/outside" ||
         (folder == "tests/fuzz" && path.ends_with("_fuzz.cpp"));
}

Offences unbuilt_sources(const std::vector<Source>& files) {
  Offences offences;
  for (const Source& file : files) {
    if (file.path.ends_with(".cpp") && !is_built(file.path)) {
      offences.push_back(file.path + ":1: no target builds this file");
    }
  }
  return offences;
}

}  // namespace

TEST_CASE("includes follow the direction of dependency") {
  for (const Source& file : cpp_files()) {
    expect_none(wrong_directions(file));
  }
}

TEST_CASE("a library is included only where it belongs") {
  for (const Source& file : cpp_files()) {
    expect_none(misplaced_libraries(file));
  }
}

TEST_CASE("quoted includes are relative to the root") {
  expect_none(unrooted_includes(cpp_files()));
}

TEST_CASE("no header is dead") { expect_none(dead_headers(cpp_files())); }

TEST_CASE("no source file is left out of the build") { expect_none(unbuilt_sources(cpp_files())); }

TEST_CASE("the rule of direction sees an offence and its line") {
  CHECK(wrong_directions({"sim/a.cpp", "\n#include \"backend/b.hpp\"\n"}) ==
        Offences{"sim/a.cpp:2: sim/ must not include backend/ (backend/b.hpp)"});
  CHECK(wrong_directions({"backend/a.cpp", "#include \"sim/b.hpp\"\n"}).size() == 1);
  CHECK(wrong_directions({"model/a.cpp", "# include \"io/b.hpp\""}).size() == 1);
  CHECK(wrong_directions({"properties/a.cpp", "#include \"sim/b.hpp\"\n"}).size() == 1);
  CHECK(wrong_directions({"io/a.cpp", "#include \"model/b.hpp\"\n"}).empty());
  CHECK(wrong_directions({"cli/a.cpp", "#include \"sim/b.hpp\"\n"}).empty());
  CHECK(wrong_directions({"model/a.cpp", "#include \"tests/b.hpp\""}).size() == 1);
  CHECK(wrong_directions({"tests/a.cpp", "#include \"cli/b.hpp\""}).empty());
}

TEST_CASE("the rule of direction knows rehearsal, explain and the program of one rank") {
  const auto offends = [](const char* path, const std::string& target) {
    return wrong_directions({path, "#include \"" + target + "\"\n"}).size() == 1;
  };
  for (const char* other : {"explain/b.hpp", "cli/b.hpp", "backend/rank_program/b.hpp"}) {
    CHECK(offends("rehearsal/run/a.cpp", other));
    CHECK(offends("backend/gloo/a.cpp", other));
  }
  CHECK(offends("explain/a.cpp", "cli/render/b.hpp"));
  CHECK(offends("io/a.cpp", "rehearsal/b.hpp"));
  CHECK(offends("backend/rank/a.cpp", "rehearsal/b.hpp"));
  CHECK(offends("backend/rank_program/a.cpp", "cli/b.hpp"));
  CHECK_FALSE(offends("backend/rank_program/a.cpp", "rehearsal/run/b.hpp"));
  CHECK_FALSE(offends("rehearsal/run/a.cpp", "backend/gloo/b.hpp"));
  CHECK_FALSE(offends("explain/a.cpp", "rehearsal/b.hpp"));
  CHECK_FALSE(offends("cli/a.cpp", "explain/b.hpp"));
}

TEST_CASE("the rule of direction knows the folders of model") {
  CHECK(wrong_directions({"model/core/a.cpp", "#include \"model/program/b.hpp\"\n"}) ==
        Offences{"model/core/a.cpp:1: model/core/ must not include model/program/ "
                 "(model/program/b.hpp)"});
  CHECK(wrong_directions({"model/strategy/a.cpp", "#include \"model/trainer/loop/b.hpp\"\n"})
            .size() == 1);
  CHECK(
      wrong_directions({"model/expression/a.cpp", "#include \"model/scenario/b.hpp\"\n"}).size() ==
      1);
  CHECK(wrong_directions({"model/trainer/loop/a.cpp", "#include \"model/user_program/b.hpp\"\n"})
            .empty());
  CHECK(wrong_directions({"sim/a.cpp", "#include \"model/trainer/loop/b.hpp\"\n"}).empty());
}

TEST_CASE("the rule of libraries sees an offence") {
  CHECK(misplaced_libraries({"sim/a.cpp", "#include <gloo/context.h>\n"}).size() == 1);
  CHECK(misplaced_libraries({"cli/a.cpp", "#include <nccl.h>\n"}).size() == 1);
  CHECK(misplaced_libraries({"sim/a.cpp", "#include <nlohmann/json.hpp>\n"}).size() == 1);
  CHECK(misplaced_libraries({"model/a.cpp", "#include <catch2/catch.hpp>\n"}).size() == 1);
  CHECK(misplaced_libraries({"backend/a.cpp", "#include <gloo/context.h>\n"}).empty());
  CHECK(misplaced_libraries({"model/a.cpp", "#include <boost/graph/a.hpp>\n"}).empty());
}

TEST_CASE("the rules of files see an offence") {
  CHECK(unrooted_includes({{"model/a.cpp", "#include \"a.hpp\""}, {"model/a.hpp", ""}}).size() ==
        1);
  CHECK(dead_headers({{"io/a.hpp", ""}, {"io/b.cpp", ""}}).size() == 1);
  CHECK(dead_headers({{"io/a.hpp", ""}, {"io/b.cpp", "#include \"io/a.hpp\""}}).empty());
  CHECK(unbuilt_sources({{"extra/a.cpp", ""}}).size() == 1);
  CHECK(unbuilt_sources({{"bench/sub/a_bench.cpp", ""}}).size() == 1);
  CHECK(unbuilt_sources({{"model/core/a.cpp", ""}}).empty());
}

}  // namespace lockstep::tidy::include_test
