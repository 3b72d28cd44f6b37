// Who may include what: model <- sim, backend, properties, io; cli sees all.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy {

namespace {

struct Include {
  std::string target;
  bool is_quoted = false;
  size_t position = 0;
};

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  for (size_t line = 0; line < text.size();) {
    const size_t line_end = std::min(text.find('\n', line), text.size());
    size_t at = skip_space(text, line);
    if (at < line_end && text[at] == '#') {
      at = skip_space(text, at + 1);
      const size_t open = text.find_first_of("<\"", at);
      if (text.substr(at).starts_with("include") && open < line_end) {
        const size_t close = text.find(text[open] == '<' ? '>' : '"', open + 1);
        includes.push_back(
            {std::string(text.substr(open + 1, close - open - 1)), text[open] == '"', line});
      }
    }
    line = line_end + 1;
  }
  return includes;
}

bool begins_with_any(std::string_view target, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return target.starts_with(start); });
}

bool may_see(std::string_view folder, std::string_view other) {
  if (folder == other || folder == "cli" || folder == "tests" || folder == "bench") {
    return true;
  }
  return folder != "model" && other == "model";
}

Offences wrong_directions(const Source& file) {
  Offences offences;
  const std::string folder = file.path.substr(0, file.path.find('/'));
  for (const Include& include : includes_of(file.text)) {
    const std::string other = include.target.substr(0, include.target.find('/'));
    const bool is_ours = begins_with_any(
        include.target, {"model/", "sim/", "backend/", "properties/", "io/", "cli/", "tests/"});
    if (is_ours && !may_see(folder, other)) {
      offences.push_back(place(file, include.position) + ": " + folder + "/ must not include " +
                         other + "/ (" + include.target + ")");
    }
  }
  return offences;
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
    } else if (is_format && !lies_in(file.path, "io") && !lies_in(file.path, "cli") &&
               !lies_in(file.path, "tests")) {
      where = "only io/ and cli/ (and tests) include ";
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

// The places from which the build takes its sources; cli/ and bench/ are not searched in depth.
bool is_built(std::string_view path) {
  for (const char* folder :
       {"model", "sim", "properties", "io", "backend", "tests/unit", "tests/cli_test", "tests/tidy",
        "tests/conformance", "tests/property", "tests/libtorch", "tests/fleet", "tests/faults",
        "tests/device", "tests/gpu", "cli/launch", "cli/calibrate", "cli/timeline",
        "cli/rank_program"}) {
    if (lies_in(path, folder)) {
      return true;
    }
  }
  const std::string_view folder = path.substr(0, path.rfind('/'));
  return folder == "cli" || (folder == "bench" && path.ends_with("_bench.cpp")) ||
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
  CHECK(unbuilt_sources({{"cli/sub/a.cpp", ""}}).size() == 1);
  CHECK(unbuilt_sources({{"model/core/a.cpp", ""}}).empty());
}

}  // namespace lockstep::tidy
