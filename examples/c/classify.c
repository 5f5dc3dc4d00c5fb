/* Texts of different lengths through one compiled model, with results in a buffer that is used again and again.
 *
 *   cc classify.c -o classify $(pkg-config --cflags --libs selkie) && ./classify ../dynamic.onnx
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "selkie/selkie.h"

enum { most_words = 200, classes = 4 };

/* Ends the program with the library's own text. */
static void require(selkie_status status, const char* what) {
  if (status == SELKIE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, selkie_status_name(status), selkie_last_error());
  exit(1);
}

static void print_ports(const selkie_model* model) {
  selkie_port port = {0};
  port.size = sizeof port;
  require(selkie_model_input(model, 0, &port), "the input");
  printf("takes %s: %s, its sizes are %s and %s\n", port.name, port.type, port.dim_names[0], port.dim_names[1]);
  for (size_t i = 0; i < selkie_model_output_count(model); ++i) {
    require(selkie_model_output(model, i, &port), "an output");
    printf("gives %s: %s\n", port.name, port.type);
  }
}

/* One text: its words are read where they lie, and the answer is written where the caller wants it. */
static selkie_status classify(selkie_context* context, const int64_t* words, int64_t count, selkie_value* answer) {
  const int64_t dims[] = {1, count};
  const char* wanted[] = {"probabilities"};
  selkie_value* ids = NULL;
  selkie_status status = selkie_value_view(SELKIE_I64, dims, 2, words, (size_t)count * sizeof *words, &ids);
  if (status != SELKIE_OK) return status;
  const selkie_value* inputs[] = {ids};
  status = selkie_run_into(context, NULL, inputs, 1, wanted, &answer, 1);
  selkie_value_free(ids);
  return status;
}

static int best_of(const float* scores) {
  int best = 0;
  for (int i = 1; i < classes; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: classify MODEL [COMPILED]\n");
    return 2;
  }
  const char* facts[] = {"S in 1..128"};
  selkie_options options = {0};
  options.size = sizeof options;
  options.dims = facts; /* the compiler may rely on it, and longer texts are refused */
  options.dims_count = 1;
  options.trip_limit = 1000; /* of the model's loop */
  selkie_model* model = NULL;
  require(selkie_compile_file(argv[1], &options, &model), argv[1]);
  print_ports(model);

  if (argc > 2) { /* what is compiled can be kept, and loads in milliseconds */
    require(selkie_model_save(model, argv[2]), argv[2]);
    selkie_model_free(model);
    require(selkie_load_file(argv[2], NULL, &model), argv[2]);
  }

  selkie_context* context = NULL;
  require(selkie_context_new(model, NULL, &context), "context");
  float scores[classes];
  selkie_value* answer = NULL;
  require(selkie_value_buffer(scores, sizeof scores, &answer), "buffer");

  int64_t words[most_words];
  for (int64_t i = 0; i < most_words; ++i) words[i] = i * i % 64;
  const int64_t lengths[] = {1, 5, 8, 9, 33, 128, 200};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    selkie_status status = classify(context, words, lengths[i], answer);
    if (status == SELKIE_OK)
      printf("%3" PRId64 " words: class %d (%.2f)\n", lengths[i], best_of(scores), (double)scores[best_of(scores)]);
    else
      printf("%3" PRId64 " words: %s: %s\n", lengths[i], selkie_status_name(status), selkie_last_error());
  }

  selkie_value_free(answer);
  selkie_context_free(context);
  selkie_model_free(model);
  return 0;
}
