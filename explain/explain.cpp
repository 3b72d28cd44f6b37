#include "explain/explain.hpp"

#include "explain/explain_tables.hpp"

namespace lockstep::cli {

namespace {

const Page* find_in(std::span<const Page> pages, std::string_view name) {
  for (const Page& page : pages) {
    if (page.name == name) {
      return &page;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<const Page*> finding_pages() {
  std::vector<const Page*> all;
  for (const auto pages : {hang_pages(), value_pages(), metric_pages(), setup_pages()}) {
    for (const Page& page : pages) {
      all.push_back(&page);
    }
  }
  return all;
}

const Page* find_page(std::string_view name) {
  for (const auto pages : {hang_pages(), value_pages(), metric_pages(), setup_pages(),
                           result_pages(), script_pages()}) {
    if (const Page* page = find_in(pages, name)) {
      return page;
    }
  }
  if (name == "step_time.high" || name == "total_time.low" || name == "total_time.high") {
    return find_page("step_time.low");
  }
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? nullptr : find_in(result_pages(), name.substr(0, dot));
}

}  // namespace lockstep::cli
