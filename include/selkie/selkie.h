/**
 * @file selkie.h
 * Selkie's C API: compile a model once, run it at any shape. docs/c_api.md is the guide.
 *
 * What holds for every function:
 *
 * - **Status.** What can fail returns a `selkie_status`, and leaves its results NULL or 0 if that is not `SELKIE_OK`.
 *   The text is in `selkie_last_error`. No C++ exception leaves the library.
 * - **Ownership.** What a function hands out through a pointer to a pointer belongs to the caller, who ends it with the
 *   `_free` function of its type. Freeing NULL does nothing. What is returned as `const` belongs to the object it was
 *   asked of and lives as long.
 * - **Arguments.** NULL where an object is needed, and an object of another type, is `SELKIE_INVALID_ARGUMENT`. Strings
 *   are UTF-8 and end with a zero; they are copied.
 * - **Threads.** A model may be used by any number of threads at a time. A context serves one run at a time. A value
 *   may be read by several threads, as long as none frees or writes it. After a fork the child makes its own contexts:
 *   it must neither use nor free those of its parent.
 * - **Versions.** Structs begin with their size, which the caller sets; all other fields at zero mean the default. A
 *   program that was compiled with an older header has smaller structs, and goes on working with a newer library of
 *   the same `SELKIE_ABI_VERSION`; one with a newer header works as long as it leaves what is new at zero.
 * - **Bugs.** Where Selkie finds a bug of its own it ends the process with a message and exit code 70.
 */
#ifndef SELKIE_SELKIE_H
#define SELKIE_SELKIE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SELKIE_API __attribute__((visibility("default")))
#else
#define SELKIE_API
#endif

#define SELKIE_VERSION_MAJOR 0
#define SELKIE_VERSION_MINOR 1
#define SELKIE_VERSION_PATCH 0
/** The number in the shared library's name. It changes when programs must be compiled again. */
#define SELKIE_ABI_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

/** What became of a call. */
typedef int32_t selkie_status;
enum {
  SELKIE_OK = 0,
  SELKIE_INVALID_ARGUMENT = 1, /**< the API was not used as it says here */
  SELKIE_NOT_FOUND = 2,        /**< there is no such file */
  SELKIE_BAD_MODEL = 3,        /**< a model cannot be read, compiled, loaded or saved */
  SELKIE_BAD_INPUT = 4,        /**< an input is not what the model takes */
  SELKIE_RUN_FAILED = 5,       /**< a run failed on the values that it was given */
  SELKIE_LIMIT_REACHED = 6,    /**< a limit of the options, or one of Selkie's own */
  SELKIE_BUFFER_TOO_SMALL = 7, /**< a result does not fit the caller's memory */
  SELKIE_OUT_OF_MEMORY = 8,
  SELKIE_INTERNAL = 9 /**< a bug of Selkie's */
};

/** Types of elements, by ONNX's numbers. Those of less than a byte have a byte each in memory, with the sign extended.
 */
typedef int32_t selkie_dtype;
enum {
  SELKIE_F32 = 1,
  SELKIE_U8 = 2,
  SELKIE_I8 = 3,
  SELKIE_U16 = 4,
  SELKIE_I16 = 5,
  SELKIE_I32 = 6,
  SELKIE_I64 = 7,
  SELKIE_STRING = 8,
  SELKIE_BOOL = 9, /**< a byte, 0 or 1 */
  SELKIE_F16 = 10,
  SELKIE_F64 = 11,
  SELKIE_U32 = 12,
  SELKIE_U64 = 13,
  SELKIE_C64 = 14,
  SELKIE_C128 = 15,
  SELKIE_BF16 = 16,
  SELKIE_F8E4M3FN = 17,
  SELKIE_F8E4M3FNUZ = 18,
  SELKIE_F8E5M2 = 19,
  SELKIE_F8E5M2FNUZ = 20,
  SELKIE_U4 = 21,
  SELKIE_I4 = 22,
  SELKIE_F4E2M1 = 23,
  SELKIE_F8E8M0 = 24,
  SELKIE_U2 = 25,
  SELKIE_I2 = 26
};

/** What a value is. */
typedef int32_t selkie_kind;
enum {
  SELKIE_NONE = 0, /**< nothing: no value, or a buffer that no run has written */
  SELKIE_TENSOR = 1,
  SELKIE_SEQUENCE = 2,
  SELKIE_OPTIONAL = 3,
  SELKIE_MAP = 4,
  SELKIE_TUPLE = 5
};

typedef struct selkie_model selkie_model;
typedef struct selkie_context selkie_context;
typedef struct selkie_value selkie_value;

/* ---- versions and errors ---- */

/** The version of the library that runs, as text: "0.1.0". Never freed. */
SELKIE_API const char* selkie_version(void);
/** The same as a number: major · 10000 + minor · 100 + patch. */
SELKIE_API uint32_t selkie_version_number(void);
/** A status in words, such as "bad input". Never NULL, never freed. */
SELKIE_API const char* selkie_status_name(selkie_status status);
/**
 * The text of the last call of this thread that failed; empty if none did. It names node, input and constraint, over
 * several lines if it has notes. It lives until the thread's next call that fails, or its end.
 */
SELKIE_API const char* selkie_last_error(void);
/** A type's name as models print it, such as "f32"; NULL if there is none of this number. Never freed. */
SELKIE_API const char* selkie_dtype_name(selkie_dtype dtype);
/** Bytes of one element in memory; 0 for strings, and if there is no such type. */
SELKIE_API size_t selkie_dtype_size(selkie_dtype dtype);

/* ---- models ---- */

enum { SELKIE_LOG_INFO = 1, SELKIE_LOG_WARNING = 2 };
/** Takes a line of the log, in the thread that compiles or loads, before that call returns. */
typedef void (*selkie_log)(void* data, int32_t level, const char* message);

/** How a model is compiled, and what its runs may use. All of it is copied. */
typedef struct selkie_options {
  size_t size;             /**< sizeof(selkie_options) */
  const char* const* dims; /**< facts that inputs must satisfy: "S in 1..512", "H % 32 == 0", "N=4" */
  size_t dims_count;
  const char* const* without; /**< names of passes that are left out */
  size_t without_count;
  const char* cache_folder; /**< keeps machine code between processes; NULL: "selkie" in the user's cache folder */
  uint64_t cache_bytes;     /**< that it may have; 0: 256 MiB */
  int32_t no_cache;         /**< 1: compile all code, and keep none */
  int32_t exact;            /**< 1: no faster algorithm whose rounding error is larger */
  int32_t compile_threads;  /**< 0: one per core */
  int32_t keep_source;      /**< 1: hold a copy of a model's bytes, for reports */
  const char* data_folder;  /**< of weights outside a model that is given as bytes; NULL: the current folder */
  uint64_t seed;            /**< of random operators */
  int64_t trip_limit;       /**< trips of one loop; 0: 2^40 */
  int64_t item_limit;       /**< items of one sequence; 0: 2^30 */
  int64_t memory_limit;     /**< bytes of a run's tensors together; 0: none of its own */
  double time_limit;        /**< seconds of a run, looked at between trips and at host calls; 0: none */
  selkie_log log;           /**< NULL: no log */
  void* log_data;
} selkie_options;

/**
 * Compiles a file once, for all shapes: ONNX, or text IR if the name ends in ".sk"; loads it if it is compiled already.
 * `options` may be NULL.
 */
SELKIE_API selkie_status selkie_compile_file(const char* path, const selkie_options* options, selkie_model** model);
/** The same of an ONNX model in memory, which need not outlive the call. */
SELKIE_API selkie_status selkie_compile_bytes(const void* bytes, size_t count, const selkie_options* options,
                                              selkie_model** model);
/**
 * Loads what `selkie_model_save` or `selkie compile` wrote, on a machine like the one that did. The file stays mapped
 * while the model is used. Of `options` only seed, limits and log have a meaning; may be NULL.
 */
SELKIE_API selkie_status selkie_load_file(const char* path, const selkie_options* options, selkie_model** model);
/** Writes a compiled model; the file appears whole or not at all. */
SELKIE_API selkie_status selkie_model_save(const selkie_model* model, const char* path);
/** Ends a model. Its contexts and values go on living. */
SELKIE_API void selkie_model_free(selkie_model* model);

/** An input or output as the model declares it. What it points to lives as long as the model. */
typedef struct selkie_port {
  size_t size; /**< sizeof(selkie_port), set by the caller */
  const char* name;
  const char* type; /**< in words: "f32[N, 3]", "seq<f32[*]>" */
  selkie_kind kind;
  selkie_dtype dtype;           /**< of a tensor's elements, or of a map's keys; else 0 */
  int64_t rank;                 /**< of a tensor; -1 if it is open, or no tensor */
  const int64_t* dims;          /**< `rank` numbers; -1 where a size is open */
  const char* const* dim_names; /**< `rank` texts: "N", "2*S + 1", "3" */
} selkie_port;

/** How many inputs a model has; 0 if it is NULL. */
SELKIE_API size_t selkie_model_input_count(const selkie_model* model);
/** How many outputs a model has; 0 if it is NULL. */
SELKIE_API size_t selkie_model_output_count(const selkie_model* model);
/** Fills `port`, whose size is set, with what input `index` is. */
SELKIE_API selkie_status selkie_model_input(const selkie_model* model, size_t index, selkie_port* port);
/** Fills `port`, whose size is set, with what output `index` is. */
SELKIE_API selkie_status selkie_model_output(const selkie_model* model, size_t index, selkie_port* port);

/** What a model was compiled to. */
typedef struct selkie_model_info {
  size_t size;         /**< sizeof(selkie_model_info), set by the caller */
  uint64_t nodes;      /**< after the passes */
  uint64_t kernels;    /**< calls of generated and library kernels */
  uint64_t host_calls; /**< operators that have no kernel */
  uint64_t code_bytes;
  int64_t code_is_cached; /**< 1: the code came from the cache */
} selkie_model_info;
/** Fills `info`, whose size is set. */
SELKIE_API selkie_status selkie_model_describe(const selkie_model* model, selkie_model_info* info);

/** Forms of reports. */
typedef int32_t selkie_form;
enum {
  SELKIE_TEXT = 0,
  SELKIE_JSON = 1, /**< as docs/cli.md has it */
  SELKIE_PAGE = 2  /**< of explain: HTML with the graph; of plan: SVG of the arena */
};
/** A size of inputs by its name in the model. */
typedef struct selkie_size {
  const char* name;
  int64_t size;
} selkie_size;

/**
 * What is known of shapes before the run, and what the model compiles to; with the name of a node or value only why it
 * is as it is, as text. Figures are for the given sizes (may be NULL), and for samples of those that are not given.
 * Reads the model again: the file must be there, or its bytes kept. `text` is ended by `selkie_text_free`.
 */
SELKIE_API selkie_status selkie_model_explain(const selkie_model* model, const char* node, const selkie_size* sizes,
                                              size_t sizes_count, selkie_form form, char** text);
/** What a run needs of memory at these sizes; otherwise as `selkie_model_explain`. */
SELKIE_API selkie_status selkie_model_plan(const selkie_model* model, const selkie_size* sizes, size_t sizes_count,
                                           selkie_form form, char** text);
/** Ends a text. */
SELKIE_API void selkie_text_free(char* text);

/* ---- values ---- */

/**
 * A tensor over the caller's memory, dense and row by row, which is read in runs and never copied, freed or written.
 * The memory must stay as long as the value, and may change between runs. `bytes` is what there is: too little for the
 * dims is an error. Elements must be aligned to their size (to 8 bytes at most). Not for strings.
 */
SELKIE_API selkie_status selkie_value_view(selkie_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                                           size_t bytes, selkie_value** value);
/** The same with a copy of the elements, which may lie anywhere. */
SELKIE_API selkie_status selkie_value_copy(selkie_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                                           size_t bytes, selkie_value** value);
/** A tensor of strings, which are copied. `lengths` may be NULL: then each ends with a zero. */
SELKIE_API selkie_status selkie_value_strings(const int64_t* dims, size_t rank, const char* const* texts,
                                              const size_t* lengths, size_t count, selkie_value** value);
/** A sequence of values, which may be freed after it was made; caller's memory that they view must stay. */
SELKIE_API selkie_status selkie_value_sequence(const selkie_value* const* items, size_t count, selkie_value** value);
/** An optional that holds `item`, or nothing if that is NULL. */
SELKIE_API selkie_status selkie_value_optional(const selkie_value* item, selkie_value** value);
/** A map: distinct keys (i64 or strings) and as many values, both tensors of rank 1. */
SELKIE_API selkie_status selkie_value_map(const selkie_value* keys, const selkie_value* values, selkie_value** value);
/**
 * Memory of the caller's for a result of `selkie_run_into`, which must stay as long as the value. After a run the value
 * is the tensor that was written there, until the next run writes it.
 */
SELKIE_API selkie_status selkie_value_buffer(void* data, size_t bytes, selkie_value** value);
/** Ends a value. */
SELKIE_API void selkie_value_free(selkie_value* value);

/** What a value is; `SELKIE_NONE` if it is NULL. */
SELKIE_API selkie_kind selkie_value_kind(const selkie_value* value);
/** The type of a tensor's elements; 0 if it is none. */
SELKIE_API selkie_dtype selkie_value_dtype(const selkie_value* value);
/** How many axes a tensor has; 0 if it is none. */
SELKIE_API size_t selkie_value_rank(const selkie_value* value);
/** A tensor's sizes, `selkie_value_rank` of them. NULL if it is no tensor. */
SELKIE_API const int64_t* selkie_value_dims(const selkie_value* value);
/** How many elements a tensor has, items a sequence, values an optional, entries a map, or fields a tuple. */
SELKIE_API size_t selkie_value_count(const selkie_value* value);
/**
 * Bytes of a tensor's elements; 0 for strings and other values. Of a buffer that was too small, as many as are needed.
 */
SELKIE_API size_t selkie_value_bytes(const selkie_value* value);
/**
 * A tensor's elements, dense and row by row, which must not be written. NULL for strings and what is no tensor, for a
 * buffer that was too small, and maybe for a tensor without elements.
 */
SELKIE_API const void* selkie_value_data(const selkie_value* value);
/** Copies a tensor's elements to `data`, which has `bytes`. */
SELKIE_API selkie_status selkie_value_read(const selkie_value* value, void* data, size_t bytes);
/** A string of a tensor of strings, by its place row by row. It may hold zeros; one more follows its end. */
SELKIE_API selkie_status selkie_value_string(const selkie_value* value, size_t index, const char** text,
                                             size_t* length);
/**
 * An item of a sequence, the value in an optional (index 0), the keys (0) or values (1) of a map, a field of a tuple.
 * It shares its elements with the whole and may outlive it.
 */
SELKIE_API selkie_status selkie_value_item(const selkie_value* value, size_t index, selkie_value** item);

/* ---- runs ---- */

/** How a context runs. */
typedef struct selkie_context_options {
  size_t size;     /**< sizeof(selkie_context_options) */
  int32_t threads; /**< that share the work of a kernel, the caller's among them; 0: one per core */
  int32_t reserved;
} selkie_context_options;

/**
 * What one run at a time needs of memory and threads. Make one for each thread that runs the model; they share code and
 * weights. `options` may be NULL.
 */
SELKIE_API selkie_status selkie_context_new(const selkie_model* model, const selkie_context_options* options,
                                            selkie_context** context);
/** Ends a context that runs nothing. */
SELKIE_API void selkie_context_free(selkie_context* context);

/**
 * Runs the model. Inputs are those of `input_names`, in any order, or without names (NULL) those of the model in its
 * order. NULL stands for an optional input that is left out. `outputs` gets a new value for each of `output_names`, or
 * for each output of the model if that is NULL.
 *
 * If it fails, all of `outputs` is NULL and the context is as usable as before. A context that another thread runs is
 * `SELKIE_INVALID_ARGUMENT`.
 */
SELKIE_API selkie_status selkie_run(selkie_context* context, const char* const* input_names,
                                    const selkie_value* const* inputs, size_t input_count,
                                    const char* const* output_names, selkie_value** outputs, size_t output_count);
/**
 * The same with results in memory of the caller's: `buffers` are values of `selkie_value_buffer`, all different. They
 * are written when the whole run has succeeded. If one is too small, none is written and all say by `selkie_value_dims`
 * and `selkie_value_bytes` what they have to hold. Results that are no tensors of numbers cannot be had this way.
 */
SELKIE_API selkie_status selkie_run_into(selkie_context* context, const char* const* input_names,
                                         const selkie_value* const* inputs, size_t input_count,
                                         const char* const* output_names, selkie_value* const* buffers,
                                         size_t buffer_count);

#ifdef __cplusplus
}
#endif

#endif
